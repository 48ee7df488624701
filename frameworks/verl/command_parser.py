"""Reads overrides of verl's `main_ppo` as keys of a run file; command.py makes them of a run file."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from frameworks import command_parser
from frameworks.command_parser import ScriptCommand, value_of_text
from frameworks.command_reading import Reading
from frameworks.command_settings import Flags
from frameworks.verl import command as verl
from frameworks.verl import objective
from frameworks.verl.objective import CORRECTION
from frameworks.verl.setting_groups import ACTOR, MODEL, REF, ROLLOUT

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
MIN_LR_RATIO = "actor_rollout_ref.actor.optim.min_lr_ratio"


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
    extra: ClassVar = {
        "more.min_lr_ratio": MIN_LR_RATIO,
        "more.max_samples": "data.train_max_samples",
    }

    def settings_of_command(self, command: ScriptCommand, folder: Path) -> dict[str, Any]:
        """See CommandParser."""
        flags = {f"--{name}": value for name, value in super().settings_of_command(command, folder).items()}
        pairs = [word.partition("=") for word in command.arguments if not word.startswith("-") and "=" in word]
        return flags | {name.lstrip("+~"): value_of_text(text) for name, _, text in pairs}

    def read(self, reading: Reading) -> None:
        """See CommandParser."""
        ppo = _read_algorithm(reading)
        gpus = _read_hardware(reading)
        _read_batch(reading, gpus)
        for key, targets in verl.OVERRIDES.items():
            critic = targets[0].startswith("critic.") or key in ("objective.gamma", "objective.gae_lambda")
            if not key.startswith("batch.") and key not in OWN and (ppo or not critic):
                reading.note_all(key, [target for target in targets if ppo or not target.startswith("critic.")])
        _read_optimizer(reading, ppo)
        _read_objective(reading, ppo)
        if reading.get(LORA["lora.r"]):
            for key, name in LORA.items():
                value = reading.get(name)
                one = key == "lora.target_modules" and not isinstance(value, list)
                reading.note(key, [str(value)] if one else value, name, LORA["lora.r"])
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

    def needed(self, stated: Collection[str]) -> dict[str, Any]:
        """See CommandParser; settings of another engine need it to be chosen."""
        engine = self.engine_of(stated)
        return {**super().needed(stated), **({"model_engine": engine} if engine else {})}

    def several_datasets(self, names: list[Any]) -> Any:
        """See CommandParser."""
        return names

    def extra_settings(self, common: Mapping[str, Any]) -> Flags:
        """See CommandParser."""
        flags = super().extra_settings(common)
        if "more.warmup_steps" in common:
            for part in ("actor_rollout_ref.actor", *["critic"] * (common["algorithm"] == "ppo")):
                flags[f"{part}.optim.lr_warmup_steps"] = (common["more.warmup_steps"], "more.warmup_steps")
        if "more.adam_beta1" in common:
            betas = [common["more.adam_beta1"], common.get("optimizer.adam_beta2", 0.999)]
            flags[f"{ACTOR}.optim.betas"] = (betas, "more.adam_beta1")
        return flags

    def as_arguments(self, flags: Flags) -> list[str]:
        """See CommandParser; without quotes where Hydra needs none."""
        plain_text = re.compile(r"='(?!true'|false'|null')([A-Za-z][\w./-]*)'\Z")
        return [plain_text.sub(r"=\1", override) for override in super().as_arguments(flags)]


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
    trained = ("actor_rollout_ref.actor", "critic") if ppo else ("actor_rollout_ref.actor",)
    schedules = [f"{part}.optim.lr_scheduler_type" for part in trained]
    reading.note_all("optimizer.schedule", schedules)
    if reading.get(schedules[0]) == "cosine" and (lowest := reading.get(MIN_LR_RATIO)):
        reading.note("optimizer.schedule", "cosine_with_min_lr", *schedules)
        reading.note("more.min_lr_ratio", lowest, MIN_LR_RATIO)
    betas = reading.get(f"{ACTOR}.optim.betas")
    reading.note("optimizer.adam_beta2", betas[1], f"{ACTOR}.optim.betas")
    if betas[0] != 0.9:
        reading.note("more.adam_beta1", betas[0], f"{ACTOR}.optim.betas")
    steps = reading.number("trainer.total_training_steps")
    if steps:
        reading.note("steps", steps, "trainer.total_training_steps", "trainer.total_epochs")
    else:
        reading.note("epochs", reading.get("trainer.total_epochs"), "trainer.total_epochs")
    warmup, ratio = ([f"{part}.optim.lr_warmup_steps{end}" for part in trained] for end in ("", "_ratio"))
    if (count := reading.number(warmup[0])) is None or count <= 0:
        reading.note_all("optimizer.warmup_ratio", ratio)
    elif steps:
        reading.note("optimizer.warmup_ratio", count / steps, *warmup, *ratio)
    else:
        reading.note("more.warmup_steps", count, *warmup, *ratio)
    if ppo and (frozen := reading.number("trainer.critic_warmup")):
        reading.note("optimizer.critic_warmup_steps", frozen - 1, "trainer.critic_warmup")
    if (every := reading.number("trainer.save_freq")) > 0:
        reading.note("checkpoints", every, "trainer.save_freq")
    if (most := reading.number("data.train_max_samples")) != -1:
        reading.note("more.max_samples", most, "data.train_max_samples")
    if reading.get(f"{ROLLOUT}.top_k") not in (-1, 0):
        reading.note("rollout.top_k", reading.get(f"{ROLLOUT}.top_k"), f"{ROLLOUT}.top_k")


def _read_objective(reading: Reading, ppo: bool) -> None:
    mode, length = f"{ACTOR}.loss_agg_mode", f"{ACTOR}.loss_scale_factor"
    reading.note_choice("objective.loss_aggregation", mode, objective.AGGREGATIONS)
    if reading.get(mode) == objective.AGGREGATIONS["max_length_mean"]:
        reading.note("objective.loss_length", reading.stated.get(length), length)
        if length not in reading.stated:
            reading.reasons[mode] = "verl divides by the longest completion of a forward pass, others by a constant"
    elif length in reading.stated:
        reading.idle[length] = "it has no effect with this mean"
    names = [f"{ACTOR}.clip_ratio{end}" for end in ("", "_low", "_high")]
    low, high = (reading.stated.get(name, reading.get(names[0])) for name in names[1:])
    reading.note("objective.clip_ratio", low, *names[: 3 if low == high else 2])
    if low != high:
        reading.note("objective.clip_ratio_high", high, names[2])
    bound = reading.number(f"{ACTOR}.clip_ratio_c")
    reading.note("objective.dual_clip", bound if bound < objective.NO_DUAL_CLIP else None, f"{ACTOR}.clip_ratio_c")
    loss = f"{ACTOR}.policy_loss.loss_mode"
    if reading.get(loss) != objective.LOSSES["ppo"]:
        reading.note_choice("objective.policy_loss", loss, objective.LOSSES)
    if not ppo:
        name = "algorithm.norm_adv_by_std_in_grpo"
        if "objective.estimator" not in reading.common:
            reading.note("objective.scale_rewards", "group" if reading.get(name) else "none", name)
        reading.idle |= {
            one: "it has no effect without a critic" for one in reading.stated if one.startswith("critic.")
        }
        for one in ("algorithm.lam", "algorithm.gamma"):
            if reading.common.get("objective.estimator") != "reinforce" or one == "algorithm.lam":
                reading.idle[one] = "it has no effect with these advantages"
        if not reading.get("trainer.critic_warmup"):
            reading.idle["trainer.critic_warmup"] = "it has no effect without a critic, and is 0"
    _read_correction(reading)
    _read_lengths(reading)
    _read_kl(reading)


def _read_correction(reading: Reading) -> None:
    """Weights for the sampler's probabilities: cut at a bound, or dropped outside a band."""
    level, bound, kept, band = (f"{CORRECTION}.rollout_{name}" for name in ("is", "is_threshold", "rs", "rs_threshold"))
    reading.note("objective.sampler_correction", reading.get(level) or "none", level)
    if not reading.get(level):
        reading.idle[bound] = f"it has no effect without {level}"
        reading.idle[f"{ROLLOUT}.calculate_log_probs"] = "it is of logs alone without a correction"
    else:
        low, _, high = str(reading.get(bound)).rpartition("_")
        reading.note("objective.correction_form", "mask" if low else "truncate", bound, level)
        reading.note("objective.correction_high", value_of_text(high), bound, level)
        reading.note("objective.correction_low", value_of_text(low) if low else None, bound)
    if reading.get(kept) is None:
        reading.idle[band] = f"it has no effect without {kept}"


def _read_lengths(reading: Reading) -> None:
    """A penalty on the last tokens before the limit, and sampling again for groups without a signal."""
    buffer = objective.OVERLONG
    named = [name for name in reading.stated if name.startswith(buffer)]
    if reading.stated.get(f"{buffer}.enable"):
        penalty, manager = reading.stated.get(f"{buffer}.penalty_factor", 1.0), "reward.reward_manager.name"
        reading.note("objective.overlong_buffer", reading.stated.get(f"{buffer}.len"), f"{buffer}.len",
                     f"{buffer}.enable", manager, "reward.reward_kwargs.max_resp_len")  # fmt: skip
        reading.note("objective.overlong_penalty", penalty, f"{buffer}.penalty_factor")
        reading.idle[f"{buffer}.log"] = "it is of logs alone"
    else:
        reading.idle |= dict.fromkeys(named, f"it has no effect without {buffer}.enable")
    again = "algorithm.filter_groups"
    if reading.get(f"{again}.enable"):
        metric = reading.stated.get(f"{again}.metric", "reward")
        reading.note("objective.dynamic_sampling", True, f"{again}.enable", f"{again}.metric")
        if metric not in ("reward", "acc", "score", "seq_reward", "seq_final_reward"):
            reading.reasons[f"{again}.metric"] = "others judge a group by its rewards"
        most = f"{again}.max_num_gen_batches"
        if reading.get(most):
            reading.reasons[most] = "others sample until a batch is full"
    else:
        reading.idle |= {
            name: f"it has no effect without {again}.enable" for name in reading.stated if name.startswith(f"{again}.")
        }


def _read_kl(reading: Reading) -> None:
    """verl may have the KL term in the loss, in the reward, or in both."""
    terms = {
        "loss": (f"{ACTOR}.use_kl_loss", f"{ACTOR}.kl_loss_coef", f"{ACTOR}.kl_loss_type"),
        "reward": ("algorithm.use_kl_in_reward", "algorithm.kl_ctrl.kl_coef", "algorithm.kl_penalty"),
    }
    used = [kl_in for kl_in, (switch, *_) in terms.items() if reading.get(switch)]
    if not used:
        reading.note("objective.kl_coefficient", 0.0, terms["loss"][0], terms["reward"][0])
    for kl_in, (switch, coefficient, kind) in terms.items():
        if used and kl_in == used[0]:
            name = str(reading.get(kind)).removesuffix("+")
            known = {theirs: ours for ours, theirs in objective.KL_ESTIMATORS.items()} | {
                ours: ours for ours in objective.KL_ESTIMATORS
            }
            reading.note("objective.kl_coefficient", reading.get(coefficient), coefficient, switch)
            reading.note("objective.kl_in", kl_in, switch)
            reading.note("objective.kl_estimator", known.get(name), kind)
            if kl_in == "loss":
                reading.note("objective.unbiased_kl_gradient", str(reading.get(kind)).endswith("+"), kind)
            if name not in known:
                reading.reasons[kind] = f"the estimator '{name}' has no counterpart"
            continue
        for setting in (coefficient, kind):
            if kl_in in used:
                reading.reasons[setting] = (
                    "a second KL term, in the reward beside the one in the loss, has no counterpart"
                )
            elif kl_in == "reward" and not used and switch not in reading.stated:
                reading.reasons[setting] = (
                    f"{switch} is off, so it has no effect; before 0.4 it was on where use_kl_loss was off: "
                    f"if it is meant, add {switch}=True"
                )
            else:
                reading.idle[setting] = f"it has no effect without {switch}"


COMMAND_PARSER = VerlCommandParser()
