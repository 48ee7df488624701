"""Commands of OpenRLHF's `train_ppo_ray`, in the names of run files, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from contracts.run_file import Run, Stage
from frameworks import command_parser
from frameworks.command_parser import Flags, Reading
from frameworks.openrlhf import command as openrlhf
from frameworks.openrlhf import parser_check
from frameworks.script_commands import Command, flags

BATCH = ("rollout.n_samples_per_prompt", "rollout.batch_size", "train.batch_size")
ALL_DATA = 100_000_000


class OpenRLHFDialect(command_parser.Dialect):
    """OpenRLHF's."""

    framework, command = "openrlhf", "python3 -m openrlhf.cli.train_ppo_ray"
    entry = re.compile(r"(^|[./])train_ppo(_ray)?(_box)?(\.py)?\Z")
    plain: ClassVar = {
        "model": "actor.model_name_or_path",
        "dataset": "data.prompt_dataset",
        "seed": "train.seed",
        "epochs": "train.num_episodes",
    }
    one_to_one = openrlhf.FLAGS

    def settings(self, command: Command, folder: Path) -> dict[str, Any]:
        """See Dialect."""
        del folder
        return flags(command.words)

    def read(self, reading: Reading) -> None:
        """See Dialect."""
        ppo = _read_advantages(reading)
        group, step, update = (reading.number(name) for name in BATCH)
        reading.put_batch(step * group, update, group, BATCH)
        for key, targets in openrlhf.FLAGS.items():
            kept = [target for target in targets if ppo or not target.startswith("critic.")]
            if (
                not key.startswith("batch.")
                and kept
                and (ppo or key not in ("objective.gamma", "objective.gae_lambda"))
            ):
                reading.put_all(key, kept)
        each, sampling = reading.get("train.micro_batch_size"), "rollout.micro_batch_size"
        reading.put(
            "batch.samples_per_device", each, "train.micro_batch_size", *[sampling] * (reading.get(sampling) == each)
        )
        _read_hardware(reading, ppo)
        _read_sampling(reading)
        _read_objective(reading, ppo)
        if not ppo:
            reading.idle |= {
                one: "it has no effect without a critic" for one in reading.stated if one.startswith("critic.")
            }
        beta1, beta2 = reading.get("actor.adam.betas")
        reading.put("optimizer.adam_beta2", beta2, "actor.adam.betas", *["critic.adam.betas"] * ppo)
        for key, name, usual in (
            ("more.adam_beta1", "actor.adam.betas", 0.9), ("more.adam_epsilon", "actor.adam.eps", 1e-8),
        ):  # fmt: skip
            if (found := beta1 if name == "actor.adam.betas" else reading.get(name)) != usual:
                reading.put(key, found, name)
        if "min_lr" in str(reading.get("actor.lr_scheduler")):
            reading.put(
                "more.min_lr_ratio", reading.get("actor.min_lr_ratio"), "actor.min_lr_ratio", "actor.lr_scheduler"
            )
        if (frozen := reading.get("critic.freezing_steps")) >= 0:
            reading.put("optimizer.critic_warmup_steps", frozen + 1, "critic.freezing_steps")

    def several(self, values: list[Any]) -> Any:
        """See Dialect."""
        return ",".join(str(value) for value in values)

    def render(self, run: Run, stage: Stage) -> Flags:
        """See Dialect."""
        return openrlhf.arguments(run, stage, 0, Path("data"), Path(run.model), Path("output"))

    def more(self, common: Mapping[str, Any]) -> Flags:
        """See Dialect."""
        found: Flags = {}
        if "more.clip_ratio_high" in common:
            band = [common.get("objective.clip_ratio", 0.2), common["more.clip_ratio_high"]]
            found["actor.eps_clip_low_high"] = (band, "more.clip_ratio_high")
        if common.get("more.ratio_level") == "sequence":
            found["actor.policy_loss_type"] = ("gspo", "more.ratio_level")
        if "more.adam_beta1" in common:
            betas = [common["more.adam_beta1"], common.get("optimizer.adam_beta2", 0.95)]
            found["actor.adam.betas"] = (betas, "more.adam_beta1")
        for key, name in (
            ("more.adam_epsilon", "actor.adam.eps"), ("more.min_lr_ratio", "actor.min_lr_ratio"),
            ("more.max_samples", "data.max_samples"),
        ):  # fmt: skip
            if key in common:
                found[name] = (common[key], key)
        return found

    def words(self, flags: Flags) -> list[str]:
        """See Dialect."""
        return openrlhf.render(flags)

    def launcher(self, run: Run, stage: Stage) -> list[str]:
        """See Dialect."""
        del run, stage
        return ["python3", "-m", "openrlhf.cli.train_ppo_ray"]

    def accept(self, run: Run, stage: Stage, flags: Flags) -> None:
        """See Dialect."""
        del stage
        parser_check.accept(run, flags)


def _read_advantages(reading: Reading) -> bool:
    """Notes the algorithm; returns whether there is a critic."""
    name, unscaled = "algo.advantage.estimator", "algo.advantage.no_std_norm"
    estimator = reading.get(name)
    known = {theirs: ours for ours, theirs in openrlhf.ESTIMATORS.items()}
    reading.put("algorithm", "ppo" if estimator == "gae" else "grpo", name)
    if estimator == "gae":
        reading.put("objective.scale_rewards", "none" if reading.get(unscaled) else None, unscaled)
    else:
        reading.put("objective.scale_rewards", known.get(estimator), name)
    if estimator not in (*known, "gae"):
        reading.reasons[name] = f"advantages by {estimator} have no counterpart; grpo is nearest"
    return bool(estimator == "gae")


def _read_hardware(reading: Reading, ppo: bool) -> None:
    """All GPUs: of actor and reference, of the critic, and of vLLM, unless they share them."""

    def gpus(entity: str) -> int:
        return int(reading.number(f"{entity}.num_nodes") * reading.number(f"{entity}.num_gpus_per_node"))

    sampling = int((reading.number("vllm.num_engines") or 0) * reading.number("vllm.tensor_parallel_size"))
    together = reading.get("train.colocate_all")
    names = [f"{entity}.{part}" for entity in ("actor", "ref", "critic") for part in ("num_nodes", "num_gpus_per_node")]
    shared = ("train.colocate_all", "train.colocate_actor_ref")
    total = gpus("actor") if together else gpus("actor") + ppo * gpus("critic") + sampling
    per_node = reading.number("actor.num_gpus_per_node")
    reading.put("hardware.gpus", total, *names, "vllm.num_engines", "vllm.tensor_parallel_size", *shared)
    reading.put(
        "hardware.nodes",
        reading.number("actor.num_nodes") if together else max(1, -(-total // max(8, per_node))),
        "actor.num_nodes",
    )
    reading.put("rollout.engine", "vllm-colocated" if together else "vllm-server", *shared)
    if not together:
        reading.put("rollout.gpus", sampling, "vllm.num_engines", "vllm.tensor_parallel_size")
    stage = reading.get("ds.zero_stage")
    reading.put("hardware.sharding", f"zero{stage}" if stage in (2, 3) else "none", "ds.zero_stage")


def _read_sampling(reading: Reading) -> None:
    longest, both, prompt = "rollout.max_new_tokens", "data.max_len", "prompt_max_len"
    if reading.get(longest) is None:
        reading.put("rollout.max_response_tokens", reading.get(both), both)  # the release's: what the prompt leaves
    elif prompt in reading.stated:
        reading.put("rollout.max_prompt_tokens", reading.get(prompt), prompt)
    elif (rest := reading.number(both) - reading.number(longest)) > 0:
        reading.put("rollout.max_prompt_tokens", rest, both, longest)
    reading.put("epochs", reading.get("train.num_episodes"), "train.num_episodes")
    if (most := reading.get("data.max_samples")) < ALL_DATA:
        reading.put("more.max_samples", most, "data.max_samples")
    if (every := reading.stated.get("ckpt.save_steps", -1)) > 0:
        reading.put("checkpoints", every, "ckpt.save_steps")
    name = "algo.advantage.is_correction_level"
    reading.put_mapped("objective.sampler_correction", name, openrlhf.CORRECTIONS)


def _read_objective(reading: Reading, ppo: bool) -> None:
    reading.put_mapped("objective.loss_aggregation", "actor.loss_agg_mode", openrlhf.AGGREGATIONS)
    if (band := reading.get("actor.eps_clip_low_high")) is not None:
        reading.put("objective.clip_ratio", band[0], "actor.eps_clip_low_high")
        if band[0] != band[1]:
            reading.put("more.clip_ratio_high", band[1], "actor.eps_clip_low_high")
    if reading.get("actor.policy_loss_type") == "gspo":
        reading.put("more.ratio_level", "sequence", "actor.policy_loss_type")
    if reading.get("algo.kl.init_coef"):
        place = "loss" if reading.get("algo.kl.use_loss") else "reward"
        reading.put("objective.kl_in", place, "algo.kl.use_loss")
        reading.put("objective.kl_estimator", reading.get("algo.kl.estimator"), "algo.kl.estimator")
        if place == "loss":
            name = "algo.kl.unbiased_gradient"
            reading.put("objective.unbiased_kl_gradient", reading.get(name), name)
    bound = reading.get("reward.clip_range")[1]
    if ppo and bound < openrlhf.NO_REWARD_CLIP:
        reading.put("objective.reward_clip", bound, "reward.clip_range")
    elif "reward.clip_range" in reading.stated and bound < openrlhf.NO_REWARD_CLIP:
        reading.reasons["reward.clip_range"] = "OpenRLHF clips the normalised rewards of a group, and nobody else does"


DIALECT = OpenRLHFDialect()
