"""Reads a command or YAML configuration of TRL's GRPO script as keys of a run file; command.py makes the command."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from contracts.run_file import Run, Stage
from frameworks import command_parser
from frameworks.command_parser import EXPORTED, ScriptCommand
from frameworks.command_reading import Reading
from frameworks.command_settings import Flags
from frameworks.trl import batch_reading, launchers, typed_values
from frameworks.trl import command as trl
from frameworks.trl.launchers import OF_ACCELERATE, OF_LAUNCHER, PROCESSES
from frameworks.trl.typed_values import Option
from system.errors import UserError

YAML = (".yaml", ".yml")
PEFT_LAYERS = ["q_proj", "v_proj"]  # what PEFT takes for Llama, Qwen2 and Qwen3 where nothing is stated
SCALES = {"group": "group", "batch": "batch", "none": "none", True: "group", False: "none"}
COUNTED_FIRST = ("evaluation_strategy", "vllm_importance_sampling_cap")  # of earlier names, before today's
WITH_END = ("cosine_with_min_lr", "cosine_warmup_with_min_lr")  # schedules whose settings say where they end
STEADY = ("constant", "constant_with_warmup")  # schedules without settings
ENDS = ("min_lr", "min_lr_rate")
CHANGED = ("more.adam_beta1", "more.adam_epsilon")
SAPO = {f"more.sapo_temperature_{sign}": f"sapo_temperature_{sign}" for sign in ("pos", "neg")}
SIMPLE = ("optimizer.", "rollout.max", "rollout.top_p", "objective.clip", "objective.dual", "objective.entropy",
          "objective.epochs", "objective.mask", "batch.samples_per_device")  # fmt: skip


class TRLCommandParser(command_parser.CommandParser):
    """TRL's."""

    framework, command = "trl", "trl grpo, or a script grpo.py"
    entry = re.compile(r"(^|[./])grpo(_\w+)?(\.py)?\Z")
    algorithms, gpus = ("grpo",), PROCESSES
    unconverted: ClassVar = {
        "model": "model_name_or_path",
        "dataset": "dataset_name",
        "seed": "seed",
        "epochs": "num_train_epochs",
    }
    estimators: ClassVar[Mapping[str, str]] = {}  # it has the group's mean alone
    losses: ClassVar = {**dict.fromkeys(trl.AGGREGATIONS.values(), "ppo"), **{name: name for name in trl.MEANS}}
    one_to_one: ClassVar = {key: [flag] for key, flag in trl.FLAGS.items()}
    extra: ClassVar = {
        "more.adam_beta1": "adam_beta1",
        "more.adam_epsilon": "adam_epsilon",
        "more.shuffle": "shuffle_dataset",
        **SAPO,
    }

    @cached_property
    def kinds(self) -> dict[str, str]:
        """By setting, also under names of earlier releases, its type; a truth value may be one of earlier releases."""
        kinds = typed_values.types()
        earlier = {name: kinds[new] for name, new in self.tables["renamed"].items()}
        return earlier | kinds | dict.fromkeys(self.tables["chosen"], typed_values.WAS_TRUTH)

    def counting_name(self, name: str, meant: Mapping[str, Any]) -> str:
        """See CommandParser; transformers 4 took a share of warm-up where no number of steps above 0 was stated."""
        steps = meant.get("warmup_steps", 0)
        if "warmup_ratio" in meant and (not steps or (isinstance(steps, int | float) and steps <= 0)):
            return "warmup_ratio"
        return next((old for old in COUNTED_FIRST if meant.get(old) is not None), super().counting_name(name, meant))

    def settings_of_command(self, command: ScriptCommand, folder: Path) -> dict[str, Any]:
        """See CommandParser; what starts the processes has a prefix.

        TRL's own parser takes a configuration file by --config alone. Scripts with the alignment handbook's take one as
        their first word.
        """
        options = typed_values.options_of(command.arguments)
        leading = typed_values.words_before_options(command.arguments)
        file = next((texts[0] for name, texts in options if name == "config" and texts), None)
        if not file and leading and leading[0].endswith(YAML) and launchers.program(command.launcher) != "trl":
            file = leading.pop(0)
        content = launchers.configuration(file, command.files, folder) if file else {}
        settings = self._settings(content, [option for option in options if option[0] != "config"], command, folder)
        return settings | ({"argument": " ".join(leading)} if leading else {})

    def settings_of_file(self, content: Mapping[Any, Any], folder: Path) -> dict[str, Any]:
        """See CommandParser."""
        return self._settings(content, [], ScriptCommand([], []), folder)

    def _settings(
        self, content: Mapping[Any, Any], options: list[Option], command: ScriptCommand, folder: Path
    ) -> dict[str, Any]:
        """Settings of a configuration file and of options, which count more; `trl` hands accelerate's on to it.

        Variables of the file's `env` are set by the training, and by `trl` before it starts accelerate.
        """
        is_trl = launchers.program(command.launcher) == "trl"
        exported = {
            str(name): str(value) for name, value in typed_values.mapping("env", content.get("env", {})).items()
        }
        environment = command.environment | (exported if is_trl else {})

        def is_handed_on(name: str) -> bool:
            return is_trl and name not in typed_values.types() and launchers.is_of_accelerate(name)

        in_file = {str(name): value for name, value in content.items() if name != "env"}
        stated = [(name, [str(value)]) for name, value in in_file.items()] + options
        handed_on = [option for option in stated if is_handed_on(option[0])]
        own = {name: typed_values.of_file(value, self.kinds.get(name)) for name, value in in_file.items()}
        own |= typed_values.settings_of_options(options, self.kinds)
        return {
            **{EXPORTED + name: value for name, value in exported.items()},
            **launchers.settings_of_launcher(command.launcher, handed_on, environment, command.files, folder),
            **{name: value for name, value in own.items() if not is_handed_on(name)},
        }

    def read(self, reading: Reading) -> None:
        """See CommandParser."""
        typed_values.refuse_other_types(reading.stated, self.kinds)
        reading.note("algorithm", "grpo")
        for key, flag in trl.FLAGS.items():
            if key.startswith(SIMPLE):
                reading.note(key, reading.get(flag), flag)
        batch_reading.read(reading)
        _read_objective(reading)
        _read_sampling(reading)
        if reading.get("use_peft"):
            for key, flag in trl.FLAGS.items():
                if key.startswith("lora."):
                    reading.note(key, reading.get(flag), flag, "use_peft")
            layers = reading.get("lora_target_modules") or PEFT_LAYERS
            reading.note("lora.target_modules", [layers] if isinstance(layers, str) else layers, "lora_target_modules")
            reading.note("lora.dropout", reading.get("lora_dropout"), "lora_dropout")
            reading.note("lora.bits", 4 if reading.get("load_in_4bit") else None, "load_in_4bit")
        reading.note_changed({key: self.extra[key] for key in CHANGED})
        if not reading.get("shuffle_dataset"):
            reading.note("more.shuffle", False, "shuffle_dataset")
        if not reading.get("mask_truncated_completions"):
            reading.common.pop("objective.mask_truncated", None)
            reading.settings.pop("objective.mask_truncated", None)
        _read_schedule(reading)

    def extra_settings(self, common: Mapping[str, Any]) -> Flags:
        """See CommandParser."""
        flags = super().extra_settings(common)
        if common.get("optimizer.schedule") in WITH_END:
            flags["lr_scheduler_kwargs"] = ({"min_lr_rate": common.get("more.min_lr_ratio", 0.1)}, "more.min_lr_ratio")
        if "epochs" in common and "optimizer.warmup_ratio" in common:  # below 1: a share of the steps
            flags["warmup_steps"] = (common["optimizer.warmup_ratio"], "optimizer.warmup_ratio")
        if "more.warmup_steps" in common:
            updates = common["batch.prompts_per_step"] // common["batch.prompts_per_update"]
            updates *= common.get("objective.epochs_per_batch", 1)
            flags["warmup_steps"] = (round(common["more.warmup_steps"] * updates), "more.warmup_steps")
        return flags

    def is_launcher(self, name: str) -> bool:
        """See CommandParser."""
        return name.startswith((OF_ACCELERATE, OF_LAUNCHER))

    def name_in_command(self, name: str, stated: Collection[str]) -> str | None:
        """See CommandParser; accelerate has none of what has its launcher's prefix."""
        return name if name.startswith(OF_ACCELERATE) else super().name_in_command(name, stated)

    def why_not_in_command(self, name: str, value: Any) -> str | None:
        """See CommandParser."""
        return typed_values.why_not_in_command(name, value)

    def launcher_of_text(self, settings: Mapping[str, Any]) -> list[str]:
        """See CommandParser; what accelerate's configuration file says is left to it."""
        return launchers.launch_words(settings)

    def launcher(self, run: Run, stage: Stage) -> list[str]:
        """See CommandParser."""
        return ["accelerate", "launch", *trl.accelerate_options(run, stage), "-m", "trl.scripts.grpo"]


def _rounded(value: float) -> float:
    """A calculated number without the last digits, where 1.28 - 1 is not 0.28."""
    return float(f"{value:.15g}")


def _read_schedule(reading: Reading) -> None:
    """The settings of a schedule besides its length and its warm-up."""
    name, schedule = "lr_scheduler_kwargs", reading.get("lr_scheduler_type")
    stated = reading.get(name)
    options = {part: value for part, value in typed_values.mapping(name, stated).items() if value is not None}
    if schedule in STEADY:
        reading.idle[name] = f"it has no effect with {schedule}"
        return
    if schedule in WITH_END and not isinstance(stated, str):  # otherwise a shell fills it in
        _note_end(reading, {part: options.pop(part) for part in ENDS if part in options})
    if others := [part for part, value in options.items() if (part, value) != ("num_cycles", 0.5)]:
        reading.reasons[name] = f"what it says of {', '.join(others)} is not translated"


def _note_end(reading: Reading, ends: Mapping[str, Any]) -> None:
    """Where a schedule ends, as a learning rate or as a share of the first; raises UserError where TRL could not."""
    if len(ends) != 1:
        raise UserError(
            "with this schedule lr_scheduler_kwargs should say either min_lr or min_lr_rate, and TRL refuses it "
            f"otherwise; {'remove one' if ends else 'add one'}",
            code="settings-conflict" if ends else "missing-setting",
        )
    ((part, value),) = ends.items()
    first = ["learning_rate"] if part == "min_lr" else []
    rate = reading.number(*first) if first else 1
    if type(value) not in (int, float) or not rate:
        raise UserError(
            f"lr_scheduler_kwargs says of {part} '{value}', which TRL cannot calculate with; correct it (YAML reads "
            "1e-7 as text, and 1.0e-7 as a number)",
            code="not-a-number",
        )
    reading.note("more.min_lr_ratio", _rounded(value / rate), "lr_scheduler_kwargs", *first)


def _read_objective(reading: Reading) -> None:
    loss = reading.get("loss_type")
    by_sequence = reading.get("importance_sampling_level") == "sequence"
    if loss in trl.MEANS:
        reading.note("objective.policy_loss", loss, "loss_type", "importance_sampling_level")
        reading.note("objective.loss_aggregation", trl.MEANS[loss], "loss_type")
        if by_sequence != (loss == "luspo"):
            reading.reasons["importance_sampling_level"] = f"others have {loss} as it was published alone"
    else:
        reading.note_choice("objective.loss_aggregation", "loss_type", trl.AGGREGATIONS)
        if by_sequence:
            reading.note("objective.policy_loss", "gspo", "importance_sampling_level")
    if loss in trl.WITHOUT_BOUND:
        reading.common.pop("objective.dual_clip", None)
        reading.settings.pop("objective.dual_clip", None)
        reading.idle["delta"] = f"it has no effect with {loss}"
    for name in ("clip_ratio", "clip_ratio_high") if loss in trl.UNCLIPPED else ():
        reading.common.pop(f"objective.{name}", None)
        reading.settings.pop(f"objective.{name}", None)
        reading.idle[trl.FLAGS[f"objective.{name}"]] = f"it has no effect with {loss}"
    reading.note_of_loss(SAPO, "sapo", loss)
    if loss == "cispo":  # TRL names the largest ratio itself
        high = reading.number("epsilon_high")
        largest = reading.number("epsilon") if high is None else high
        reading.note("objective.clip_ratio", 1.0, "loss_type")  # there is no lower bound
        reading.note("objective.clip_ratio_high", _rounded(largest - 1), "epsilon" if high is None else "epsilon_high")
        if high is not None:
            reading.idle["epsilon"] = "it has no effect with this loss"
    reading.note("objective.scale_rewards", SCALES.get(reading.get("scale_rewards")), "scale_rewards")
    reading.note("objective.kl_coefficient", reading.get("beta"), "beta")
    if reading.get("beta"):
        reading.note("objective.kl_in", "loss", "beta")
        reading.note("objective.kl_estimator", "k3", "beta")
    if reading.get("beta") or "use_bias_correction_kl" in reading.stated:
        reading.note("objective.unbiased_kl_gradient", reading.get("use_bias_correction_kl"), "use_bias_correction_kl")


def _read_sampling(reading: Reading) -> None:
    reading.note("rollout.max_prompt_tokens", reading.get("max_prompt_length"), "max_prompt_length")
    engine = {"server": "vllm-server", "colocate": "vllm-colocated"}.get(mode := reading.get("vllm_mode"))
    if engine is None:
        raise UserError(
            f"vllm_mode should be server or colocate, but is '{mode}'; correct it", code="unknown-name", name=mode
        )
    used = reading.get("use_vllm")
    reading.note("rollout.engine", engine if used else "transformers", "use_vllm", "vllm_mode")
    if engine == "vllm-server" and used:
        reading.note("rollout.gpus", 1, "vllm_mode")
    if reading.get("top_k"):
        reading.note("rollout.top_k", reading.get("top_k"), "top_k")
    elif reading.get("top_k") is None:
        reading.idle["top_k"] = "null, as 0, keeps the whole distribution"
    mode, wanted, bound = (f"vllm_importance_sampling_{name}" for name in ("mode", "correction", "clip"))
    if (used or wanted in reading.stated) and reading.get(wanted):
        level, _, form = str(reading.get(mode)).partition("_")
        reading.note("objective.sampler_correction", level, wanted, mode)
        reading.note("objective.correction_form", form, mode)
        reading.note("objective.correction_low", reading.get(f"{bound}_min") or 0.0, f"{bound}_min")
        reading.note("objective.correction_high", reading.get(f"{bound}_max"), f"{bound}_max")
    elif used or wanted in reading.stated:
        reading.note("objective.sampler_correction", "none", wanted, mode)
    of_sampler = typed_values.mapping("generation_kwargs", reading.get("generation_kwargs"))
    sampled = of_sampler.get("temperature")
    reading.note(
        "rollout.temperature",
        reading.get("temperature") if sampled is None else sampled,
        "temperature",
        "generation_kwargs",
    )
    if sampled is not None:
        reading.note("objective.logits_temperature", reading.get("temperature"), "temperature", "generation_kwargs")
    if set(of_sampler) - {"temperature"}:
        reading.reasons["generation_kwargs"] = "further settings of sampling have no counterpart"


COMMAND_PARSER = TRLCommandParser()
