"""Reads a command of OpenRLHF's `train_ppo_ray` as keys of a run file; command.py makes it of a run file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from frameworks import command_parser
from frameworks.command_reading import Reading
from frameworks.command_settings import Flags
from frameworks.openrlhf import command as openrlhf
from frameworks.openrlhf import objective

BATCH = ("rollout.n_samples_per_prompt", "rollout.batch_size", "train.batch_size")
LORA = {
    "lora.r": "ds.lora.rank",
    "lora.alpha": "ds.lora.alpha",
    "lora.target_modules": "ds.lora.target_modules",
    "lora.dropout": "ds.lora.dropout",
}
ALL_DATA = 100_000_000
WARMUP_IN_STEPS = (
    "OpenRLHF counts it as a share of the steps, whose number the text does not say, and warms up over "
    f"{openrlhf.WARMUP_RATIO} of them where no lr_warmup_ratio is stated"
)


class OpenRLHFCommandParser(command_parser.CommandParser):
    """OpenRLHF's."""

    framework, command = "openrlhf", "python3 -m openrlhf.cli.train_ppo_ray"
    entry = re.compile(r"(^|[./])train_ppo(_ray)?(_box)?(\.py)?\Z")
    unconverted: ClassVar = {
        "model": "actor.model_name_or_path",
        "dataset": "data.prompt_dataset",
        "seed": "train.seed",
        "epochs": "train.num_episodes",
    }
    one_to_one = openrlhf.FLAGS
    estimators: ClassVar = {
        "gae": "gae", **dict.fromkeys(objective.ESTIMATORS.values(), "group"), **objective.NAMED_ESTIMATORS,
    }  # fmt: skip
    losses: ClassVar = objective.LOSSES
    why_without: ClassVar = {
        "more.max_samples": "OpenRLHF ends with a pass over the training set, which these steps do not",
        "more.shuffle": "OpenRLHF always takes prompts in random order",
        "more.warmup_steps": WARMUP_IN_STEPS,
        "more.critic_warmup_steps": WARMUP_IN_STEPS,
    }
    notes: ClassVar = {
        "steps": "in one pass, if the training set has as many problems; otherwise these steps need more episodes",
    }
    not_in_command: ClassVar = {
        "rollout.top_k": "OpenRLHF has no setting for it; a run file's is set by frameworks/openrlhf/sampling_agent.py",
    }
    policy = "actor."
    extra: ClassVar = {
        "more.adam_epsilon": "actor.adam.eps",
        "more.min_lr_ratio": "actor.min_lr_ratio",
        "more.max_samples": "data.max_samples",
        "more.critic_schedule": "critic.lr_scheduler",
        "more.critic_min_lr_ratio": "critic.min_lr_ratio",
        "more.critic_warmup_ratio": "critic.lr_warmup_ratio",
        "more.critic_weight_decay": "critic.adam.weight_decay",
        "more.critic_max_grad_norm": "critic.max_norm",
        "more.critic_adam_betas": "critic.adam.betas",
    }

    def has_critic(self, settings: Mapping[str, Any]) -> bool:
        """See CommandParser."""
        name = "algo.advantage.estimator"
        return bool(settings.get(name, settings.get("advantage_estimator", self.defaults[name])) == "gae")

    def read(self, reading: Reading) -> None:
        """See CommandParser."""
        ppo = _read_advantages(reading)
        if isinstance(datasets := reading.stated.get("data.prompt_dataset"), str) and "," in datasets:
            reading.note("dataset", datasets.split(","), "data.prompt_dataset")
        group, step, update = (reading.number(name) for name in BATCH)
        reading.note_batch(step * group, update, group, BATCH)
        for key, targets in openrlhf.FLAGS.items():
            kept = [target for target in targets if ppo or not target.startswith("critic.")]
            if (
                not key.startswith("batch.")
                and key not in ("optimizer.schedule", "optimizer.warmup_ratio")
                and kept
                and (ppo or key not in ("objective.gamma", "objective.gae_lambda"))
            ):
                reading.note_all(key, kept)
        _read_discounts(reading, ppo)
        each, sampling = reading.get("train.micro_batch_size"), "rollout.micro_batch_size"
        reading.note(
            "batch.samples_per_device", each, "train.micro_batch_size", *[sampling] * (reading.get(sampling) == each)
        )
        _read_hardware(reading, ppo)
        _read_sampling(reading)
        _read_objective(reading, ppo)
        if reading.get(LORA["lora.r"]):
            for key, name in LORA.items():
                value = reading.one_or_many(name) if key == "lora.target_modules" else reading.get(name)
                reading.note(key, value, name, LORA["lora.r"])
        if not ppo:
            reading.idle |= {
                one: "it has no effect without a critic" for one in reading.stated if one.startswith("critic.")
            }
        reading.note_betas("actor.adam.betas", "critic.adam.betas" if ppo else None)
        reading.note_changed({"more.adam_epsilon": "actor.adam.eps"})
        _read_schedules(reading, ("actor", *["critic"] * ppo))
        if (frozen := reading.number("critic.freezing_steps")) >= 0:
            reading.note("optimizer.critic_warmup_steps", frozen + 1, "critic.freezing_steps")

    def as_arguments(self, flags: Flags) -> list[str]:
        """See CommandParser; what is no switch takes True as a word."""
        switches = {name for name, default in self.defaults.items() if isinstance(default, bool)}
        return super().as_arguments(
            {
                name: ("True" if value is True and name not in switches else value, key)
                for name, (value, key) in flags.items()
            }
        )

    def several_datasets(self, names: list[Any]) -> Any:
        """See CommandParser."""
        return ",".join(map(str, names))

    def extra_settings(self, common: Mapping[str, Any]) -> Flags:
        """See CommandParser."""
        flags = super().extra_settings(common)
        if "more.adam_beta1" in common:
            betas = [common["more.adam_beta1"], common.get("optimizer.adam_beta2", 0.95)]
            flags["actor.adam.betas"] = (betas, "more.adam_beta1")
        if "steps" in common and "more.max_samples" in common:
            per_pass = common["more.max_samples"] // common["batch.prompts_per_step"]
            if per_pass and common["steps"] % per_pass == 0:
                flags["train.num_episodes"] = (common["steps"] // per_pass, "steps")
            else:  # then the steps alone are stated
                del flags["data.max_samples"]
        return flags


def _schedule(reading: Reading, part: str) -> tuple[str, float | None]:
    """How a part's learning rate changes, and where it ends."""
    name = str(reading.get(f"{part}.lr_scheduler"))
    return name, reading.get(f"{part}.min_lr_ratio") if "min_lr" in name else None


def _read_schedules(reading: Reading, trained: Sequence[str]) -> None:
    """How learning rates change; transformers has no warm-up with `constant`."""
    schedules = {part: _schedule(reading, part) for part in trained}
    reading.note_schedules(schedules, "lr_scheduler", "min_lr_ratio")
    steady = [f"{part}.lr_warmup_ratio" for part, (name, _) in schedules.items() if name == "constant"]
    reading.note_all(
        "optimizer.warmup_ratio",
        [f"{part}.lr_warmup_ratio" for part in trained],
        lambda name: 0.0 if name in steady else reading.get(name),
    )
    for name in steady:
        reading.idle[name] = "it has no effect with a constant schedule"
        reading.settings = {
            key: tuple(one for one in settings if one != name) for key, settings in reading.settings.items()
        }


def _read_advantages(reading: Reading) -> bool:
    """Notes the algorithm; returns whether there is a critic."""
    name, unscaled = "algo.advantage.estimator", "algo.advantage.no_std_norm"
    estimator = reading.get(name)
    known = {theirs: ours for ours, theirs in objective.ESTIMATORS.items()}
    reading.note("algorithm", "ppo" if estimator == "gae" else "grpo", name)
    if estimator == "gae":
        reading.note("objective.scale_rewards", "none" if reading.get(unscaled) else None, unscaled)
    elif estimator in known:
        reading.note("objective.scale_rewards", known[estimator], name)
    else:
        reading.note_choice("objective.estimator", name, objective.NAMED_ESTIMATORS)
    if unscaled in reading.stated and estimator in ("reinforce", "reinforce_baseline"):
        reading.reasons[unscaled] = "others always divide these advantages by their std"
    elif estimator != "gae":
        reading.idle[unscaled] = f"it has no effect with {estimator}"
    return bool(estimator == "gae")


def _read_discounts(reading: Reading, ppo: bool) -> None:
    """Without a critic, what is known later may be discounted in REINFORCE++."""
    gamma, lambd = "algo.advantage.gamma", "algo.advantage.lambd"
    if ppo:
        return
    reading.idle[lambd] = "it has no effect without a critic"
    if reading.common.get("objective.estimator") == "reinforce":
        reading.note_changed({"objective.gamma": gamma})
    else:
        reading.idle[gamma] = "OpenRLHF has 1 with these advantages"


def _read_hardware(reading: Reading, ppo: bool) -> None:
    """All GPUs: of actor and reference, of the critic, and of vLLM, unless they share them."""

    def gpus(entity: str) -> int:
        return int(reading.number(f"{entity}.num_nodes") * reading.number(f"{entity}.num_gpus_per_node"))

    sampling = int((reading.number("vllm.num_engines") or 0) * reading.number("vllm.tensor_parallel_size"))
    trained_together = reading.get("train.colocate_all")  # and sampled there, unless trainer and sampler work at once
    together = trained_together and not reading.get("train.async_enable")
    names = [f"{entity}.{part}" for entity in ("actor", "ref", "critic") for part in ("num_nodes", "num_gpus_per_node")]
    shared = ("train.colocate_all", "train.colocate_actor_ref")
    total = gpus("actor") + (0 if trained_together else ppo * gpus("critic")) + (0 if together else sampling)
    per_node = reading.number("actor.num_gpus_per_node")
    reading.note("hardware.gpus", total, *names, "vllm.num_engines", "vllm.tensor_parallel_size", *shared)
    reading.note(
        "hardware.nodes",
        reading.number("actor.num_nodes") if together else max(1, -(-total // max(8, per_node))),
        "actor.num_nodes",
    )
    reading.note("rollout.engine", "vllm-colocated" if together else "vllm-server", *shared)
    if not together:
        reading.note("rollout.gpus", sampling, "vllm.num_engines", "vllm.tensor_parallel_size")
    stage = reading.get("ds.zero_stage")
    reading.note("hardware.sharding", f"zero{stage}" if stage in (2, 3) else "none", "ds.zero_stage")


def _read_sampling(reading: Reading) -> None:
    longest, both, prompt = "rollout.max_new_tokens", "data.max_len", "prompt_max_len"
    if reading.get(longest) is None:
        reading.note("rollout.max_response_tokens", reading.get(both), both)
        reading.reasons[both] = "it limits prompt and completion together, and others the completion alone"
    elif (limit := reading.get(prompt)) is not None:  # an earlier release's
        reading.note("rollout.max_prompt_tokens", limit, prompt)
    elif (rest := reading.number(both) - reading.number(longest)) > 0:
        reading.note("rollout.max_prompt_tokens", rest, both, longest)
    reading.note("epochs", reading.get("train.num_episodes"), "train.num_episodes")
    if (most := reading.number("data.max_samples")) < ALL_DATA:
        reading.note("more.max_samples", most, "data.max_samples")
    if (every := reading.number("ckpt.save_steps")) > 0:
        reading.note("checkpoints", every, "ckpt.save_steps")
    name = "algo.advantage.is_correction_level"
    mode, bounds, gate = (f"algo.advantage.is_correction_{part}" for part in ("mode", "threshold", "gating"))
    if reading.get(name) != "off" and reading.get("actor.policy_loss_type") == "gspo":
        reading.reasons |= dict.fromkeys((name, mode, bounds, gate), objective.CORRECTED_GSPO)
        return
    reading.note_choice("objective.sampler_correction", name, openrlhf.CORRECTIONS)
    if reading.get(name) == "off":
        reading.idle |= dict.fromkeys((mode, bounds, gate), f"it has no effect while {name} is off")
        return
    if reading.get(gate) != "ratio":
        reading.reasons[gate] = "others judge by the ratio of the probabilities alone"
    low, high = [0.0, *reading.numbers(bounds, 2, or_one=True)][-2:]
    reading.note("objective.correction_form", {"clip": "truncate", "mask": "mask"}.get(reading.get(mode)), mode, name)
    reading.note("objective.correction_low", low, bounds, name)
    reading.note("objective.correction_high", high, bounds, name)


def _read_objective(reading: Reading, ppo: bool) -> None:
    loss, mean = "actor.policy_loss_type", "actor.loss_agg_mode"
    if reading.get(loss) == "gspo":
        reading.note("objective.loss_aggregation", objective.MEAN_OF_GSPO, loss)
        reading.idle[mean] = "it has no effect with gspo"
    else:
        reading.note_choice("objective.loss_aggregation", mean, objective.AGGREGATIONS)
    if (band := reading.numbers("actor.eps_clip_low_high", 2)) is not None:
        reading.note("objective.clip_ratio", band[0], "actor.eps_clip_low_high")
        reading.idle["actor.eps_clip"] = "it has no effect beside actor.eps_clip_low_high"
        if band[0] != band[1]:
            reading.note("objective.clip_ratio_high", band[1], "actor.eps_clip_low_high")
    if reading.get(loss) != objective.LOSSES["ppo"]:
        reading.note_choice("objective.policy_loss", loss, objective.LOSSES)
    buffer, penalty, again = (
        "reward.overlong_buffer_len",
        "reward.overlong_penalty_factor",
        "algo.dynamic_filtering_enable",
    )
    if reading.get(buffer):
        reading.note("objective.overlong_buffer", int(reading.number(buffer)), buffer)
        reading.note("objective.overlong_penalty", reading.get(penalty), penalty)
    else:
        reading.idle[penalty] = f"it has no effect without {buffer}"
    if reading.get(again):
        reading.note("objective.dynamic_sampling", True, again)
        if reading.get("algo.dynamic_filtering_range") not in ([0, 1], [0.0, 1.0]):
            reading.reasons["algo.dynamic_filtering_range"] = (
                "others sample a group again where all its rewards are equal"
            )
    else:
        reading.idle["algo.dynamic_filtering_range"] = f"it has no effect without {again}"
    if reading.get("algo.kl.init_coef"):
        kl_in = "loss" if reading.get("algo.kl.use_loss") else "reward"
        reading.note("objective.kl_in", kl_in, "algo.kl.use_loss")
        reading.note("objective.kl_estimator", reading.get("algo.kl.estimator"), "algo.kl.estimator")
        if kl_in == "loss":
            name = "algo.kl.unbiased_gradient"
            reading.note("objective.unbiased_kl_gradient", reading.get(name), name)
    else:
        reading.idle |= dict.fromkeys(
            ("algo.kl.use_loss", "algo.kl.estimator", "algo.kl.unbiased_gradient"),
            "it has no effect while algo.kl.init_coef is 0",
        )
    bound = reading.get("reward.clip_range")[1]
    if ppo and bound < openrlhf.NO_REWARD_CLIP:
        reading.note("objective.reward_clip", bound, "reward.clip_range")
    elif "reward.clip_range" in reading.stated and bound < openrlhf.NO_REWARD_CLIP:
        reading.reasons["reward.clip_range"] = "OpenRLHF clips the normalised rewards of a group, and nobody else does"


COMMAND_PARSER = OpenRLHFCommandParser()
