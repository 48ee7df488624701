"""What TRL calls its metrics, and what we call them."""

COLUMNS = {
    "reward": "reward_mean",
    "completions/mean_length": "response_length_mean",
    "completions/max_length": "response_length_max",
    "completions/clipped_ratio": "truncated_rate",
    "kl": "kl",
    "entropy": "entropy",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
    "step_time": "seconds",
    "num_tokens": "tokens",
    "loss": "loss",
    "sampling/sampling_logp_difference/mean": "sampler_mismatch",
}

IMPORTED = {"reward_std": "reward_std", "frac_reward_zero_std": "zero_signal_rate"}

TIMERS = {  # of frameworks/trl/step_timers.py
    "timing/sampling": "sampling",
    "timing/reward": "reward",
    "timing/log_probabilities": "log-probabilities and reference",
    "timing/advantages": "advantages",
    "timing/update": "update",
    "timing/weight_transfer": "weight transfer",
    "timing/checkpoint": "checkpoint",
}

# Names of earlier releases (of logs made without us): today's name, and what the value is multiplied with. Read in
# trl/trainer/grpo_trainer.py of each release.
EARLIER = {"completion_length": ("completions/mean_length", 1.0)}  # up to 0.16
GROUP_STD = (
    "reward_std of groups"  # what `reward_std` is up to 0.26: the mean of the groups', not that of all completions
)
SINCE = "step_time"  # what releases before 0.26 do not log
PRINTED = {
    r"(?m)^\s*\{'(?:loss|reward|num_tokens)'": (
        "TRL's console text, which does not number its steps: import trainer_state.json, which is in every checkpoint "
        "folder, or the TensorBoard events"
    )
}
