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
