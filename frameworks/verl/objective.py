"""What a run is trained for, as Hydra overrides of verl: advantages, losses, their correction, and the KL term."""

from __future__ import annotations

from typing import Any

from contracts.run_file import Run
from frameworks import objective_checks
from frameworks.command_settings import CommandSettings
from frameworks.run_settings import choose, refuse
from frameworks.verl import running_advantage
from frameworks.verl.setting_groups import ACTOR, ROLLOUT

ESTIMATORS = {"ppo": "gae", "grpo": "grpo"}
NAMED_ESTIMATORS = {
    "reinforce": "reinforce_plus_plus", "reinforce_baseline": "reinforce_plus_plus_baseline", "rloo": "rloo",
    "remax": "remax", "opo": "opo", "gpg": "gpg", "grpo_passk": "grpo_passk", "gdpo": "gdpo",
    "optimal_token_baseline": "optimal_token_baseline", "tir_optimal_token_baseline": "tir_optimal_token_baseline",
}  # fmt: skip
SQUARES = "sums of squared probabilities"
NOT_TRAINED = {  # by estimator, what verl's trainer does not give it (trainer/ppo/v1/trainer_base.py, line 1745)
    "remax": "rewards of greedy completions", "gdpo": "each reward by itself",
    "optimal_token_baseline": SQUARES, "tir_optimal_token_baseline": SQUARES,
}  # fmt: skip
NEED_GROUPS = ("group", "reinforce_baseline", "rloo", "opo", "gpg", "grpo_passk")
LOSSES = {
    "ppo": "vanilla", "gspo": "gspo", "cispo": "cispo", "sapo": "sapo", "gpg": "gpg", "dppo_tv": "dppo_tv",
    "dppo_kl": "dppo_kl", "clip_cov": "clip_cov", "kl_cov": "kl_cov", "geo_mean": "geo_mean", "dro": "dro",
    "bypass_mode": "bypass_mode",
}  # fmt: skip
OWN_MEAN = {"sapo": "completion_mean", "geo_mean": "completion_mean"}  # whatever loss_agg_mode says
UNCLIPPED = ("sapo", "gpg", "kl_cov", "dro")  # the losses that do not read the clip range
DUAL_CLIPPED = ("ppo", "dppo_tv", "dppo_kl", "bypass_mode")  # the losses that read clip_ratio_c
CORRECTION = "algorithm.rollout_correction"
NEEDED_BESIDE = {"dro": f"{ACTOR}.policy_loss.dro_beta", "bypass_mode": f"{CORRECTION}.bypass_mode"}
OVERLONG = "reward.reward_kwargs.overlong_buffer_cfg"
AGGREGATIONS = {
    "completion_mean": "seq-mean-token-mean", "token_mean": "token-mean", "max_length_mean": "seq-mean-token-sum-norm",
}  # fmt: skip
KL_ESTIMATORS = {"k1": "kl", "k2": "mse", "k3": "low_var_kl"}
NO_DUAL_CLIP = 1e9  # verl always clips there; the ratios themselves end at exp(20), below it
NO_LOWER_BOUND = 1e-9  # of the sampler's weights: verl's own are above exp(-20)


def state(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """State the settings of the loss and of the KL term; raises UserError for what verl does not have."""
    objective_checks.check(flags.run, keys, UNCLIPPED)
    _state_loss(flags, keys)
    _state_kl(flags, keys)


def advantage_estimator(run: Run, keys: dict[str, Any]) -> str:
    """Where advantages come from."""
    if name := keys.get("objective.estimator"):
        if run.algorithm == "ppo" or "objective.scale_rewards" in keys:
            text = " takes the place of a critic and of scale_rewards; remove one"
            raise refuse(run, "objective.estimator", text, "settings-conflict")
        if name in NOT_TRAINED:
            text = f": verl's trainer does not compute what {name} needs, {NOT_TRAINED[name]}; choose another"
            raise refuse(run, "objective.estimator", text, "value-not-in-framework")
        return str(choose(run, "verl", "objective.estimator", name, NAMED_ESTIMATORS))
    return running_advantage.NAME if keys.get("objective.scale_rewards") == "running" else ESTIMATORS[run.algorithm]


def check_native(flags: CommandSettings) -> None:
    """Raise UserError for a loss that lacks a setting under `native`, or a correction that one there turns off."""
    loss = flags.get(f"{ACTOR}.policy_loss.loss_mode", ("", ""))[0]
    if (needed := NEEDED_BESIDE.get(loss)) and not flags.get(needed, (None, ""))[0]:
        text = f": verl's {loss} needs native.{needed}; add it"
        raise refuse(flags.run, "objective.policy_loss", text, "missing-setting")
    bypassed = flags.get(f"{CORRECTION}.bypass_mode", (False, ""))[0]
    if bypassed and flags[f"{CORRECTION}.rollout_is"][0]:
        text = f" has no effect with native.{CORRECTION}.bypass_mode; remove one"
        raise refuse(flags.run, "objective.sampler_correction", text, "settings-conflict")


def _state_loss(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """How token losses are made, averaged and bounded, and rewards are scaled."""
    _state_policy_loss(flags, keys)
    if mean := keys.get("objective.loss_aggregation"):
        mode = choose(flags.run, "verl", "objective.loss_aggregation", mean, AGGREGATIONS)
        flags.state(f"{ACTOR}.loss_agg_mode", mode, "objective.loss_aggregation")
        if mean == "max_length_mean":  # otherwise the divisor is the longest completion of a forward pass
            key = "objective.loss_length" if "objective.loss_length" in keys else "rollout.max_response_tokens"
            flags.state(f"{ACTOR}.loss_scale_factor", keys[key], key)
    if "objective.loss_length" in keys and mean != "max_length_mean":
        raise refuse(
            flags.run, "objective.loss_length", " needs loss_aggregation: max_length_mean", "settings-conflict"
        )
    if "objective.dual_clip" not in keys and keys.get("objective.policy_loss", "ppo") in DUAL_CLIPPED:
        flags.state(f"{ACTOR}.clip_ratio_c", NO_DUAL_CLIP, "objective.dual_clip")
    scale = keys.get("objective.scale_rewards", "running")
    if flags.run.algorithm == "ppo" and "objective.scale_rewards" in keys:
        text = ": verl always divides the advantages of a critic by the batch's std; remove it"
        raise refuse(flags.run, "objective.scale_rewards", text, "value-not-in-framework")
    if scale != "running":
        by_std = choose(flags.run, "verl", "objective.scale_rewards", scale, {"group": True, "none": False})
        flags.state("algorithm.norm_adv_by_std_in_grpo", by_std, "objective.scale_rewards")
    if keys.get("objective.dynamic_sampling"):
        flags.state("algorithm.filter_groups.enable", True, "objective.dynamic_sampling")
        # A penalty on length makes the rewards of answers that are all right, or all wrong, differ: judged before it.
        metric = "score" if keys.get("objective.overlong_buffer") else "reward"
        flags.state("algorithm.filter_groups.metric", metric, "objective.dynamic_sampling")
    _state_overlong(flags, keys)
    _state_correction(flags, keys)


def _state_policy_loss(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """The policy loss; what it does not read is refused."""
    loss = keys.get("objective.policy_loss", "ppo")
    mode, mean = (
        choose(flags.run, "verl", "objective.policy_loss", loss, LOSSES),
        keys.get("objective.loss_aggregation"),
    )
    if mean and mean != OWN_MEAN.get(loss, mean):
        text = f": verl's {loss} has {OWN_MEAN[loss]}, not {mean}"
        raise refuse(flags.run, "objective.loss_aggregation", text, "settings-conflict")
    if "objective.dual_clip" in keys and loss not in DUAL_CLIPPED:
        text = f": verl's {loss} has no such bound; remove it"
        raise refuse(flags.run, "objective.dual_clip", text, "settings-conflict")
    if "objective.policy_loss" in keys:
        flags.state(f"{ACTOR}.policy_loss.loss_mode", mode, "objective.policy_loss")


def _state_overlong(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """The penalty on the last tokens before the limit, which verl's reward manager `dapo` adds to the reward."""
    if not (buffer := keys.get("objective.overlong_buffer")):
        if "objective.overlong_penalty" in keys:
            raise refuse(flags.run, "objective.overlong_penalty", " needs overlong_buffer", "settings-conflict")
        return
    flags.state("reward.reward_manager.name", "dapo", "objective.overlong_buffer")
    for name, value in (("enable", True), ("len", buffer), ("log", False)):
        flags.state(f"+{OVERLONG}.{name}", value, "objective.overlong_buffer")
    flags.state(
        f"+{OVERLONG}.penalty_factor", keys.get("objective.overlong_penalty", 1.0), "objective.overlong_penalty"
    )
    longest = keys["rollout.max_response_tokens"]
    flags.state("+reward.reward_kwargs.max_resp_len", longest, "rollout.max_response_tokens")


def _state_correction(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """Weights for the sampler's probabilities: cut at an upper bound, or dropped outside a band."""
    level, key = keys.get("objective.sampler_correction", "none"), "objective.sampler_correction"
    by_mean = level == "sequence_mean"  # tokens have weights, and sequences are dropped by the mean of their log-ratios
    flags.state(f"{CORRECTION}.rollout_is", {"none": None, "sequence_mean": "token"}.get(level, level), key)
    # Without a correction too: verl then logs how far the sampler's probabilities are from the trainer's.
    flags.state(f"{ROLLOUT}.calculate_log_probs", True, key)
    low, high = (keys.get(f"objective.correction_{end}") for end in ("low", "high"))
    form = keys.get("objective.correction_form", "mask" if by_mean else "truncate")
    if level == "none" or (form == "truncate" and low is high is None and not by_mean):
        return
    if form == "truncate" and by_mean:
        text = ": sequences that are judged by their mean are dropped or kept"
        raise refuse(flags.run, "objective.correction_form", text, "value-not-in-framework")
    if form == "truncate" and low:
        text = ": verl truncates from above alone"
        raise refuse(flags.run, "objective.correction_low", text, "setting-not-in-framework")
    if low is high is None:
        missing = "objective.correction_form" if "objective.correction_form" in keys else key
        text = " needs correction_low or correction_high: verl drops nothing without them"
        raise refuse(flags.run, missing, text, "missing-setting")
    low, high = low or NO_LOWER_BOUND, high or NO_DUAL_CLIP
    if by_mean:  # verl judges by the sampler's probability over the trainer's
        flags.state(f"{CORRECTION}.rollout_rs", "seq_mean_k1", key)
        flags.state(f"{CORRECTION}.rollout_rs_threshold", f"{1 / high}_{1 / low}", "objective.correction_high")
        low, high, form = 0.0, NO_DUAL_CLIP, "truncate"
    bound = f"{low}_{high}" if form == "mask" else high
    flags.state(f"{CORRECTION}.rollout_is_threshold", bound, "objective.correction_high")


def _state_kl(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """The KL term, in the reward or in the loss."""
    coefficient = keys.get("objective.kl_coefficient", 0)
    in_reward = keys.get("objective.kl_in", "reward" if flags.run.algorithm == "ppo" else "loss") == "reward"
    estimator = KL_ESTIMATORS[keys.get("objective.kl_estimator", "k1" if in_reward else "k3")]
    if (unbiased := keys.get("objective.unbiased_kl_gradient", False)) and in_reward:
        text = ": a KL term in the reward has no gradient"
        raise refuse(flags.run, "objective.unbiased_kl_gradient", text, "settings-conflict")
    flags.state("algorithm.use_kl_in_reward", bool(coefficient) and in_reward, "objective.kl_in")
    flags.state(f"{ACTOR}.use_kl_loss", bool(coefficient) and not in_reward, "objective.kl_in")
    if coefficient and in_reward:
        flags.state("algorithm.kl_ctrl.kl_coef", coefficient, "objective.kl_coefficient")
        flags.state("algorithm.kl_penalty", estimator, "objective.kl_estimator")
    elif coefficient:
        flags.state(f"{ACTOR}.kl_loss_coef", coefficient, "objective.kl_coefficient")
        flags.state(f"{ACTOR}.kl_loss_type", f"{estimator}+" if unbiased else estimator, "objective.kl_estimator")
