"""Reads overrides of verl's `main_ppo` as keys of a run file; command.py makes them of a run file."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from frameworks import command_parser
from frameworks.command_parser import ScriptCommand, value_of_text
from frameworks.command_reading import Reading
from frameworks.command_settings import Flags
from frameworks.verl import command as verl
from frameworks.verl import objective, objective_reading
from frameworks.verl.setting_groups import ACTOR, MODEL, REF, ROLLOUT

PROGRAM = re.compile(r"(^|(^|[./])trainer[./])main_ppo(\.py)?\Z|main_dapo(\.py)?\Z")  # verl's own training loop
SETTING = re.compile(r"^[-+~]|=")  # or another option
REMOVAL = "~"  # before a setting that Hydra is to take out
INTERPOLATION = re.compile(r"(?<!\\)\$\{(\w+(?:\.\w+)+)\}")
MOST_INTERPOLATIONS = 5  # one in another
CRITIC_SCHEDULES = {**verl.SCHEDULES, "cosine_with_min_lr": "cosine"}
BATCH = (
    f"{ROLLOUT}.n", "data.train_batch_size", f"{ACTOR}.ppo_mini_batch_size",
)  # fmt: skip
OWN = (
    "objective.clip_ratio",
    "objective.clip_ratio_high",
    "objective.dual_clip",
    "lora.r",
    "lora.alpha",
    "optimizer.warmup_ratio",
    "rollout.max_response_tokens",
    "rollout.top_k",
)  # read below
SYNONYMS = {"grpo_vectorized": "grpo", "rloo_vectorized": "rloo"}  # the same formulas, computed otherwise
LORA = {
    "lora.r": f"{MODEL}.lora_rank",
    "lora.alpha": f"{MODEL}.lora_alpha",
    "lora.target_modules": f"{MODEL}.target_modules",
}
ENGINES = Path(__file__).with_name("released_engines.json")  # settings that are there with another `model_engine` alone
ADDED = (
    "reward.reward_kwargs.", "ray_kwargs.ray_init.", f"{ACTOR}.optim.override_optimizer_config.",
    "critic.optim.override_optimizer_config.", f"{ACTOR}.fsdp_config.mixed_precision.",
    f"{REF}.fsdp_config.mixed_precision.", "critic.fsdp.mixed_precision.",
)  # fmt: skip
POLICY = "actor_rollout_ref.actor"


class VerlCommandParser(command_parser.CommandParser):
    """verl's."""

    framework, command = "verl", "python3 -m verl.trainer.main_ppo"
    entry = re.compile(r"(^|[./])main_(ppo|dapo)(\.py)?\Z")
    unconverted: ClassVar = {
        "model": f"{MODEL}.path",
        "dataset": "data.train_files",
        "seed": "data.seed",
        "epochs": "trainer.total_epochs",
    }
    one_to_one, says_none = verl.OVERRIDES, True
    estimators: ClassVar = {
        "gae": "gae", "grpo": "group", "grpo_vectorized": "group", "rloo_vectorized": "rloo",
        **{theirs: ours for ours, theirs in objective.NAMED_ESTIMATORS.items()},
    }  # fmt: skip
    losses: ClassVar = {theirs: ours for ours, theirs in objective.LOSSES.items()}
    why_without: ClassVar = {"more.min_lr_ratio": "verl has such an end with a cosine schedule alone"}
    policy = f"{POLICY}."
    extra: ClassVar = {
        "more.min_lr_ratio": f"{POLICY}.optim.min_lr_ratio",
        "more.warmup_steps": f"{POLICY}.optim.lr_warmup_steps",
        "more.max_samples": "data.train_max_samples",
        "more.shuffle": "data.shuffle",
        **objective_reading.SAPO,
        "more.critic_warmup_ratio": "critic.optim.lr_warmup_steps_ratio",
        "more.critic_weight_decay": "critic.optim.weight_decay",
        "more.critic_max_grad_norm": "critic.optim.clip_grad",
        "more.critic_adam_betas": "critic.optim.betas",
    }

    def settings_of_command(self, command: ScriptCommand, folder: Path) -> dict[str, Any]:
        """See CommandParser; a group that is stated as a whole is so many settings, and a removal (~) is one itself."""
        del folder
        pairs = [word.partition("=") for word in command.arguments if not word.startswith("-")]
        stated = [
            [(name, text)] if name.startswith(REMOVAL) else _leaves(name.lstrip("+"), value_of_text(text))
            for name, equals, text in pairs if equals or name.startswith(REMOVAL)
        ]  # fmt: skip
        another = {"program": command.program} if command.program and not PROGRAM.search(command.program) else {}
        return _other_words(command.arguments) | another | dict(chain(*stated))

    def has_critic(self, settings: Mapping[str, Any]) -> bool:
        """See CommandParser."""
        name = "algorithm.adv_estimator"
        return bool(settings.get(name, self.defaults[name]) == "gae")

    def read(self, reading: Reading) -> None:
        """See CommandParser."""
        _resolve(reading)
        ppo = _read_algorithm(reading)
        gpus = _read_hardware(reading)
        _read_batch(reading, gpus)
        for name in (f"{POLICY}.optim.clip_grad", "critic.optim.clip_grad"):
            if name in reading.stated and reading.number(name) == 0:
                reading.reasons[name] = "at 0 verl leaves nothing of the gradient, and others do not clip it"
        for key, targets in verl.OVERRIDES.items():
            critic = targets[0].startswith("critic.") or key in ("objective.gamma", "objective.gae_lambda")
            noted_elsewhere = key.startswith("batch.") or key in OWN or targets[0] in reading.reasons
            if not noted_elsewhere and (ppo or not critic):
                reading.note_all(key, [target for target in targets if ppo or not target.startswith("critic.")])
        _read_optimizer(reading, ppo)
        objective_reading.read(reading, ppo)
        if reading.get(LORA["lora.r"]):
            for key, name in LORA.items():
                value = reading.one_or_many(name) if key == "lora.target_modules" else reading.get(name)
                reading.note(key, value, name, LORA["lora.r"])
            reading.note("lora.dropout", 0.0, LORA["lora.r"])

    def own_values(self, common: Mapping[str, Any]) -> Mapping[str, Any]:
        """See CommandParser."""
        if common.get("optimizer.schedule") != "cosine_with_min_lr":
            return common
        return {"more.min_lr_ratio": 0.1, **common, "optimizer.schedule": "cosine"}

    def meant_then(self, settings: Mapping[str, Any], earlier: Mapping[str, Any]) -> Mapping[str, Any]:
        """See CommandParser; before 0.4 the KL term was in the reward where it was not in the loss."""
        name = "algorithm.use_kl_in_reward"
        if name in earlier and settings.get(f"{ACTOR}.use_kl_loss"):
            return {other: value for other, value in earlier.items() if other != name}
        return earlier

    def name_in_command(self, name: str, stated: Collection[str]) -> str | None:
        """See CommandParser; a setting in a group that is empty by default is added, which Hydra writes with a +."""
        if name.startswith(REMOVAL):
            removed = f"{name.lstrip(REMOVAL)}."
            return name if any(f"{one}.".startswith(removed) for one in self.defaults) else None
        parts, engine, known = name.split("."), self.engine_of(stated), dict(self.defaults)
        if engine:
            known |= self.engines[engine]["has"]
            known = {one: value for one, value in known.items() if one not in self.engines[engine]["lacks"]}
        if name in known or name.startswith("hydra."):
            return name
        above = [".".join(parts[:count]) for count in range(1, len(parts))]
        added = name.startswith(ADDED) or any(
            known.get(group) == {} or group.endswith(".override_transformer_config") for group in above
        )
        return f"+{name}" if added and not name.startswith("reward_model.") else None

    @cached_property
    def engines(self) -> dict[str, dict[str, Any]]:
        """By engine other than the default one, its own settings with their defaults."""
        return dict(json.loads(ENGINES.read_text(encoding="utf-8")))

    def engine_of(self, stated: Collection[str]) -> str | None:
        """The engine that settings belong to, if it is not the default one."""
        return next((engine for name in stated for engine in self.engines if f".{engine}." in name), None)

    def needed(self, stated: Mapping[str, Any]) -> dict[str, Any]:
        """See CommandParser; settings of another engine need it to be chosen, a penalty on length the limit.

        What some estimators read, the earlier trainer alone computes (trainer/ppo/ray_trainer.py).
        """
        engine, length = self.engine_of(stated), "data.max_response_length"
        result = super().needed(stated) | ({"model_engine": engine} if engine else {})
        if stated.get(f"{objective.OVERLONG}.enable"):
            limit = stated.get(length, self.defaults[length])
            result |= {"reward.reward_kwargs.max_resp_len": limit, f"{objective.OVERLONG}.log": False}
        if stated.get("algorithm.adv_estimator") in objective.NOT_TRAINED:
            result["trainer.use_v1"] = False
        return result

    def several_datasets(self, names: list[Any]) -> Any:
        """See CommandParser."""
        return names

    def extra_settings(self, common: Mapping[str, Any]) -> Flags:
        """See CommandParser."""
        flags, schedule = super().extra_settings(common), common.get("more.critic_schedule")
        if common.get("optimizer.schedule") != "cosine":
            flags = {name: (value, key) for name, (value, key) in flags.items() if key != "more.min_lr_ratio"}
        if flags.get("critic.optim.clip_grad", (1, ""))[0] == 0:
            flags["critic.optim.clip_grad"] = (verl.NO_GRADIENT_CLIP, "more.critic_max_grad_norm")
        if "more.adam_beta1" in common:
            betas = [common["more.adam_beta1"], common.get("optimizer.adam_beta2", 0.999)]
            flags[f"{ACTOR}.optim.betas"] = (betas, "more.adam_beta1")
        if schedule in CRITIC_SCHEDULES:
            lowest = common.get("more.critic_min_lr_ratio", 0.1 if schedule == "cosine_with_min_lr" else 0.0)
            flags["critic.optim.lr_scheduler_type"] = (CRITIC_SCHEDULES[schedule], "more.critic_schedule")
            flags["critic.optim.min_lr_ratio"] = (lowest, "more.critic_min_lr_ratio")
        return flags

    def as_arguments(self, flags: Flags) -> list[str]:
        """See CommandParser; without quotes where Hydra needs none, and with what a shell or Hydra is to fill in."""
        plain_text = re.compile(r"='(?!true'|false'|null')([A-Za-z][\w./-]*|\$\{\w+(\.\w+)+\})'\Z")
        stated = {name: value for name, value in flags.items() if not name.startswith(REMOVAL)}
        overrides = [override.replace(r"\${", "${") for override in super().as_arguments(stated)]
        removed = [f"{name}={text}" if text else name for name, (text, _) in flags.items() if name.startswith(REMOVAL)]
        return removed + [plain_text.sub(r"=\1", override) for override in overrides]


def _other_words(arguments: Sequence[str]) -> dict[str, Any]:
    """Hydra's own options, such as --config-name with its value, and words that are no settings."""
    others: dict[str, Any] = {}
    remaining = list(arguments)
    while remaining:
        word = remaining.pop(0)
        if word.startswith("-"):
            name, equals, text = word.lstrip("-").partition("=")
            if not equals and remaining and not SETTING.search(remaining[0]):
                equals, text = "=", remaining.pop(0)
            others[f"--{name}"] = value_of_text(text) if equals else True
        elif word and not SETTING.search(word):
            others[word] = ""
    return others


def _leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    """A setting, or those of the group that is stated in its place."""
    if not isinstance(value, dict) or not value:
        return [(name, value)]
    return [leaf for part, inner in value.items() for leaf in _leaves(f"{name}.{part}", inner)]


def _resolve(reading: Reading) -> None:
    """Put the values of other settings in the place of `${…}`, which Hydra would; what is not known stays."""

    def value_of(match: re.Match[str]) -> str:
        value = reading.stated.get(match[1], reading.defaults.get(match[1], match[0]))
        return value if isinstance(value, str) else json.dumps(value)

    for _ in range(MOST_INTERPOLATIONS):
        for name, value in reading.stated.items():
            if isinstance(value, str) and INTERPOLATION.search(value):
                reading.stated[name] = value_of_text(INTERPOLATION.sub(value_of, value))


def _read_algorithm(reading: Reading) -> bool:
    name = "algorithm.adv_estimator"
    estimator = SYNONYMS.get(reading.get(name), reading.get(name))
    reading.note("algorithm", "ppo" if estimator == "gae" else "grpo", name)
    if estimator not in objective.ESTIMATORS.values():
        reading.note_choice("objective.estimator", name, objective.NAMED_ESTIMATORS, estimator)
    return bool(estimator == "gae")


def _read_hardware(reading: Reading) -> int:
    """Notes the GPUs; returns how many train."""
    each, nodes = reading.number("trainer.n_gpus_per_node"), reading.number("trainer.nnodes")
    reading.note(
        "hardware.gpus",
        0 if reading.get("trainer.device") == "cpu" else each * nodes,
        "trainer.n_gpus_per_node",
        "trainer.nnodes",
    )
    reading.note("hardware.nodes", nodes, "trainer.nnodes")
    name = f"{ACTOR}.fsdp_config.reshard_after_forward"
    reading.note("hardware.sharding", "zero3" if reading.get(name) else "zero2", name)
    longest, padded = f"{ROLLOUT}.response_length", "data.max_response_length"
    if longest in reading.stated:
        reading.note("rollout.max_response_tokens", reading.stated[longest], longest)
        reading.idle[padded] = f"it has no effect beside {longest}"
    else:
        reading.note("rollout.max_response_tokens", reading.get(padded), padded)
    reading.note("rollout.engine", "vllm-colocated", f"{ROLLOUT}.name")
    if (sampler := reading.stated.get(f"{ROLLOUT}.name", "vllm")) != "vllm":
        reading.reasons[f"{ROLLOUT}.name"] = f"others have no {sampler}; vLLM samples"
    return int(each * nodes)


def _read_batch(reading: Reading, gpus: int) -> None:
    """verl counts prompts, but completions in forward passes; until 0.2 those of all GPUs together."""
    group, step, update = (reading.number(name) for name in BATCH)
    reading.note_batch(step * group, update * group, group, BATCH)
    name, old = f"{ACTOR}.ppo_micro_batch_size_per_gpu", f"{ACTOR}.ppo_micro_batch_size"
    if (each := reading.number(name)) is None and reading.number(old):
        each = max(1, reading.number(old) // gpus)
    others = [f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu", f"{REF}.log_prob_micro_batch_size_per_gpu"]
    reading.note(
        "batch.samples_per_device", each, name, old, *(other for other in others if reading.get(other) == each)
    )


def _read_optimizer(reading: Reading, ppo: bool) -> None:
    trained = [f"{part}.optim" for part in (POLICY, *["critic"] * ppo)]
    steps = reading.number("trainer.total_training_steps")
    schedules = {part: _schedule(reading, part, steps) for part in trained}
    reading.note_schedules(schedules, "lr_scheduler_type", "min_lr_ratio")
    reading.note_betas(f"{POLICY}.optim.betas", "critic.optim.betas" if ppo else None)
    if steps:
        reading.note("steps", steps, "trainer.total_training_steps", "trainer.total_epochs")
        reason = "the steps count here; verl ends after these epochs, too, if they come first"
        reading.reasons["trainer.total_epochs"] = reason
    else:
        reading.note("epochs", reading.get("trainer.total_epochs"), "trainer.total_epochs")
    _read_warmup(reading, trained, steps)
    if not reading.get("data.shuffle"):
        reading.note("more.shuffle", False, "data.shuffle")
    if ppo and (frozen := reading.number("trainer.critic_warmup")):
        reading.note("optimizer.critic_warmup_steps", frozen - 1, "trainer.critic_warmup")
    if (every := reading.number("trainer.save_freq")) > 0:
        reading.note("checkpoints", every, "trainer.save_freq")
    if (most := reading.number("data.train_max_samples")) != -1:
        reading.note("more.max_samples", most, "data.train_max_samples")
    if reading.get(f"{ROLLOUT}.top_k") not in (-1, 0):
        reading.note("rollout.top_k", reading.get(f"{ROLLOUT}.top_k"), f"{ROLLOUT}.top_k")


def _warmup(reading: Reading, part: str, steps: float | None) -> tuple[str, float]:
    """A part's warm-up: as a share, or in steps of nobody knows how many."""
    count = reading.number(f"{part}.lr_warmup_steps", or_null=True)
    if count is None or count <= 0:
        return "warmup_ratio", reading.number(f"{part}.lr_warmup_steps_ratio") or 0.0
    return ("warmup_ratio", count / steps) if steps else ("warmup_steps", count)


def _schedule(reading: Reading, part: str, steps: float | None) -> tuple[str, float | None]:
    """How a part's learning rate changes, and where it ends; others have no warm-up with `constant`."""
    name, lowest = reading.get(f"{part}.lr_scheduler_type"), reading.get(f"{part}.min_lr_ratio")
    if name == "constant" and _warmup(reading, part, steps)[1]:
        return "constant_with_warmup", None
    return ("cosine_with_min_lr", lowest) if name == "cosine" and lowest else (name, None)


def _read_warmup(reading: Reading, trained: Sequence[str], steps: float | None) -> None:
    """The warm-up of the policy and, where it is another, of the critic."""
    (name, value), *others = parts = [_warmup(reading, part, steps) for part in trained]
    same = [part for part, own in zip(trained, parts, strict=True) if own == parts[0]]
    settings = [f"{part}.lr_warmup_steps{end}" for part in same for end in ("", "_ratio")]
    reading.note(f"{'optimizer' if name == 'warmup_ratio' else 'more'}.{name}", value, *settings)
    for name, value in others:
        if (name, value) != parts[0]:
            settings = [f"critic.optim.lr_warmup_steps{end}" for end in ("", "_ratio")]
            reading.note(f"more.critic_{name}", value, *settings)


COMMAND_PARSER = VerlCommandParser()
