"""What a run is trained for, as flags of OpenRLHF: advantages, losses and the KL term."""

from __future__ import annotations

from typing import Any

from frameworks import objective_checks
from frameworks.command_settings import CommandSettings
from frameworks.run_settings import choose, refuse

AGGREGATIONS = {"completion_mean": "seq-mean-token-mean", "token_mean": "token-mean"}
ESTIMATORS = {"group": "group_norm", "none": "dr_grpo"}  # of GRPO
NAMED_ESTIMATORS = {name: name for name in ("reinforce", "reinforce_baseline", "rloo", "flash_reinforce")}
NEED_GROUPS = ("group_norm", "dr_grpo", "reinforce_baseline", "rloo")
LOSSES = {"ppo": "ppo", "gspo": "gspo"}
MEAN_OF_GSPO = "completion_mean"  # whatever loss_agg_mode says
CORRECTED_GSPO = "with gspo the correction puts the sampler's probabilities in the place of the old ones"


def state(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """State the settings of the objective; raises UserError for what OpenRLHF does not have."""
    run = flags.run
    objective_checks.check(run, keys, unclipped=())
    ppo = run.algorithm == "ppo"
    in_loss = keys.get("objective.kl_in", "reward" if ppo else "loss") == "loss"
    if keys.get("objective.kl_coefficient", 0) < 0:
        text = ": OpenRLHF leaves a KL term of a weight below 0 out"
        raise refuse(run, "objective.kl_coefficient", text, "value-not-in-framework")
    if keys.get("objective.unbiased_kl_gradient") and not in_loss:
        text = ": a KL term in the reward has no gradient"
        raise refuse(run, "objective.unbiased_kl_gradient", text, "settings-conflict")
    for key, used in (
        ("kl_coefficient", in_loss and keys.get("objective.kl_coefficient")),
        ("entropy_coefficient", keys.get("objective.entropy_coefficient")),
    ):
        if used and keys.get("objective.loss_aggregation") == "completion_mean":
            text = ": OpenRLHF averages this term over all tokens; use loss_aggregation: token_mean"
            raise refuse(run, f"objective.{key}", text, "settings-conflict")
    flags.state("algo.kl.use_loss", in_loss, "objective.kl_in")
    estimator = keys.get("objective.kl_estimator", "k3" if in_loss else "k1")
    flags.state("algo.kl.estimator", estimator, "objective.kl_estimator")
    if mean := keys.get("objective.loss_aggregation"):
        mode = choose(run, "OpenRLHF", "objective.loss_aggregation", mean, AGGREGATIONS)
        flags.state("actor.loss_agg_mode", mode, "objective.loss_aggregation")
    _state_by_name(flags, keys)
    if not ppo:
        _state_estimator(flags, keys)
        return
    scale = keys.get("objective.scale_rewards", "batch")
    if scale == "group":
        text = ": with a critic OpenRLHF divides advantages by the batch's, or not"
        raise refuse(run, "objective.scale_rewards", text, "value-not-in-framework")
    flags.state("algo.advantage.estimator", "gae", "algorithm")
    flags.state("algo.advantage.no_std_norm", scale == "none", "objective.scale_rewards")


def _state_by_name(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """The loss, its clip range, and what is done about lengths and groups without a signal."""
    if loss := keys.get("objective.policy_loss"):
        kind = choose(flags.run, "OpenRLHF", "objective.policy_loss", loss, LOSSES)
        flags.state("actor.policy_loss_type", kind, "objective.policy_loss")
    if loss == "gspo" and (mean := keys.get("objective.loss_aggregation", MEAN_OF_GSPO)) != MEAN_OF_GSPO:
        text = f": OpenRLHF's gspo has {MEAN_OF_GSPO}, not {mean}"
        raise refuse(flags.run, "objective.loss_aggregation", text, "settings-conflict")
    if loss == "gspo" and keys.get("objective.sampler_correction", "none") != "none":
        raise refuse(flags.run, "objective.sampler_correction", f": {CORRECTED_GSPO}", "settings-conflict")
    if "objective.clip_ratio_high" in keys:
        bounds = [keys.get("objective.clip_ratio", objective_checks.CLIP_RATIO), keys["objective.clip_ratio_high"]]
        flags.state("actor.eps_clip_low_high", bounds, "objective.clip_ratio_high")
    if buffer := keys.get("objective.overlong_buffer"):
        flags.state("reward.overlong_buffer_len", buffer, "objective.overlong_buffer")
        penalty = keys.get("objective.overlong_penalty", 1.0)
        flags.state("reward.overlong_penalty_factor", penalty, "objective.overlong_penalty")
    elif "objective.overlong_penalty" in keys:
        raise refuse(flags.run, "objective.overlong_penalty", " needs overlong_buffer", "settings-conflict")
    if keys.get("objective.dynamic_sampling"):
        flags.state("algo.dynamic_filtering_enable", True, "objective.dynamic_sampling")


def _state_estimator(flags: CommandSettings, keys: dict[str, Any]) -> None:
    """Where advantages come from without a critic."""
    if name := keys.get("objective.estimator"):
        if "objective.scale_rewards" in keys:
            text = " takes the place of scale_rewards; remove one"
            raise refuse(flags.run, "objective.estimator", text, "settings-conflict")
        key, estimator = "estimator", choose(flags.run, "OpenRLHF", "objective.estimator", name, NAMED_ESTIMATORS)
    else:
        key, scale = "scale_rewards", keys.get("objective.scale_rewards", "group")
        estimator = choose(flags.run, "OpenRLHF", "objective.scale_rewards", scale, ESTIMATORS)
    if estimator in NEED_GROUPS and keys.get("batch.samples_per_prompt") == 1:
        text = f": {estimator} needs at least 2 completions per prompt"
        raise refuse(flags.run, "batch.samples_per_prompt", text, "too-few-samples")
    flags.state("algo.advantage.estimator", estimator, f"objective.{key}")
