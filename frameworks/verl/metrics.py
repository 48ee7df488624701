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

TIMERS = {  # verl rewards a completion as soon as it is sampled
    "timing_s/gen": "sampling and reward",
    "timing_s/reward": "sampling and reward",
    "timing_s/old_log_prob": "log-probabilities",
    "timing_s/ref": "reference",
    "timing_s/values": "values",
    "timing_s/adv": "advantages",
    "timing_s/update_critic": "update",
    "timing_s/update_actor": "update",
    "timing_s/save_checkpoint": "checkpoint",
    "timing_s/update_weights": "weight transfer",
    "timing_s/testing": "evaluation",
}

# Names of earlier releases (of logs made without us): today's name, and what the value is multiplied with. Read in
# verl/trainer/ppo and verl/workers of each release; TinyZero and Logic-RL have those of 0.1 and 0.2.
EARLIER = {
    "critic/kl": ("actor/reward_kl_penalty", 1.0),  # up to 0.3
    "actor/entropy_loss": ("actor/entropy", 1.0),  # up to 0.4
    "actor/lr(1e-4)": ("actor/lr", 1e-4),  # 0.1
    "perf/time_per_step": ("timing_s/step", 1.0),  # beside it, from 0.3
    "actor/pg_loss": ("actor/loss", 1.0),  # beside it, today
}
