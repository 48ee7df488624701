"""What verl calls its metrics, and what we call them; `truncated_rate` follows from two (see VerlAdapter.columns)."""

COLUMNS = {
    "critic/score/mean": "reward_mean",
    "response_length/mean": "response_length_mean",
    "response_length/max": "response_length_max",
    "actor/reward_kl_penalty": "kl",  # of a KL term in the reward
    "actor/kl_loss": "kl",  # of one in the loss
    "actor/entropy": "entropy",
    "actor/grad_norm": "grad_norm",
    "actor/lr": "learning_rate",
    "timing_s/step": "seconds",
    "perf/total_num_tokens": "tokens",
    "actor/loss": "loss",
    "training/rollout_probs_diff_mean": "sampler_mismatch",
    "critic/vf_loss": "critic_loss",
    "critic/grad_norm": "critic_grad_norm",
}
