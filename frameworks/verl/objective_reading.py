"""Reads the objective in overrides of verl's `main_ppo`; objective.py makes them of a run file."""

from __future__ import annotations

from frameworks.command_parser import value_of_text
from frameworks.command_reading import Reading
from frameworks.verl import objective
from frameworks.verl.objective import CORRECTION
from frameworks.verl.setting_groups import ACTOR, ROLLOUT

LOSS = f"{ACTOR}.policy_loss.loss_mode"
SAPO = {f"more.sapo_temperature_{sign}": f"{ACTOR}.tau_{sign}" for sign in ("pos", "neg")}
CLIPPED_OTHERWISE = (
    "verl 0.4 and later read clip_ratio_low and clip_ratio_high, here {low} and {high}, and it only where those are "
    "null; --release says an earlier one"
)


def read(reading: Reading, ppo: bool) -> None:
    """Note the objective: losses with their bounds and means, advantages, corrections, lengths and the KL term."""
    loss = {theirs: ours for ours, theirs in objective.LOSSES.items()}.get(reading.get(LOSS))
    _read_mean(reading, loss)
    _read_clips(reading, loss)
    reading.note_of_loss(SAPO, "sapo", loss)
    if loss != "ppo":
        reading.note_choice("objective.policy_loss", LOSS, objective.LOSSES)
    else:
        reading.idle[LOSS] = "it is PPO's, as by default"
    if not ppo:
        name = "algorithm.norm_adv_by_std_in_grpo"
        if "objective.estimator" not in reading.common:
            scale = "group" if reading.get(name) else "none"
            reading.note("objective.scale_rewards", scale, name, "algorithm.adv_estimator")
        reading.idle |= {
            one: "it has no effect without a critic" for one in reading.stated if one.startswith("critic.")
        }
        without_effect = ["algorithm.lam", "algorithm.gamma"]
        if reading.common.get("objective.estimator") == "reinforce":
            reading.note_changed({"objective.gamma": without_effect.pop()})
        reading.idle |= dict.fromkeys(without_effect, "it has no effect with these advantages")
        if not reading.get("trainer.critic_warmup"):
            reading.idle["trainer.critic_warmup"] = "it has no effect without a critic, and is 0"
    _read_correction(reading)
    _read_lengths(reading)
    _read_kl(reading)


def _read_mean(reading: Reading, loss: str | None) -> None:
    """How token losses are averaged; some losses have a mean of their own."""
    mode, length = f"{ACTOR}.loss_agg_mode", f"{ACTOR}.loss_scale_factor"
    if loss in objective.OWN_MEAN:
        reading.note("objective.loss_aggregation", objective.OWN_MEAN[loss], LOSS)
        reading.idle |= dict.fromkeys((mode, length), f"it has no effect with {loss}")
        return
    reading.note_choice("objective.loss_aggregation", mode, objective.AGGREGATIONS)
    if reading.get(mode) == objective.AGGREGATIONS["max_length_mean"]:
        reading.note("objective.loss_length", reading.stated.get(length), length)
        if length not in reading.stated:
            reading.reasons[mode] = "verl divides by the longest completion of a forward pass, others by a constant"
    elif length in reading.stated:
        reading.idle[length] = "it has no effect with this mean"


def _read_clips(reading: Reading, loss: str | None) -> None:
    """The bounds of the ratio."""
    names = [f"{ACTOR}.clip_ratio{end}" for end in ("", "_low", "_high")]
    if loss in objective.UNCLIPPED:
        reading.idle |= dict.fromkeys([*names, f"{ACTOR}.clip_ratio_c"], f"it has no effect with {loss}")
        return
    ends = [reading.stated.get(name, reading.defaults[name]) for name in names[1:]]
    used = [names[0] if end is None else name for name, end in zip(names[1:], ends, strict=True)]
    low, high = map(reading.number, used)
    if names[0] not in used:
        reading.idle[names[0]] = CLIPPED_OTHERWISE.format(low=low, high=high)
    shared = low == high and loss != "cispo"  # others have its upper bound alone
    reading.note("objective.clip_ratio", low, used[0], names[1], *[names[2]] * shared)
    if not shared:
        reading.note("objective.clip_ratio_high", high, used[1], names[2])
    bound = reading.number(f"{ACTOR}.clip_ratio_c")
    if loss is not None and loss not in objective.DUAL_CLIPPED:
        reading.idle[f"{ACTOR}.clip_ratio_c"] = f"it has no effect with {loss}"
    elif bound < objective.NO_DUAL_CLIP:
        reading.note("objective.dual_clip", bound, f"{ACTOR}.clip_ratio_c")
    else:
        reading.idle[f"{ACTOR}.clip_ratio_c"] = "at this size it bounds nothing"


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
        reading.note("objective.correction_low", value_of_text(low) if low else 0.0, bound)
    if reading.get(kept) is None:
        reading.idle[band] = f"it has no effect without {kept}"


def _read_lengths(reading: Reading) -> None:
    """A penalty on the last tokens before the limit, and sampling again for groups without a signal."""
    buffer = objective.OVERLONG
    named = [name for name in reading.stated if name.startswith(buffer)]
    manager = "reward.reward_manager.name"
    if named and reading.get(manager) != "dapo":
        reading.idle |= dict.fromkeys(named, f"only the reward manager dapo reads it; this is {reading.get(manager)}")
    elif reading.stated.get(f"{buffer}.enable"):
        penalty = reading.stated.get(f"{buffer}.penalty_factor", 1.0)
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
