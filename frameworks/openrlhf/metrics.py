"""What OpenRLHF calls its metrics, and what we call them."""

COLUMNS = {
    "rollout/reward_mean": "reward_mean",
    "rollout/response_length_mean": "response_length_mean",
    "rollout/truncated_rate": "truncated_rate",
    "kl": "kl",
    "entropy_loss": "entropy",
    "actor_grad_norm": "grad_norm",
    "actor_lr": "learning_rate",
    "timing/step_total": "seconds",
    "policy_loss": "loss",
    "vllm_kl": "sampler_mismatch",
    "critic_loss": "critic_loss",
    "critic_grad_norm": "critic_grad_norm",
    "return": "return",
}

IMPORTED = {"rollout/reward_std": "reward_std"}

TIMERS = {  # OpenRLHF rewards a completion as soon as it is sampled, and runs its models side by side before an update
    "timing/generation": "sampling and reward",
    "timing/make_experience": "log-probabilities, reference and values",
    "timing/ppo_train": "update",
    "timing/broadcast": "weight transfer",
    "timing/checkpoint": "checkpoint",  # ours: checkpoint_timer.py
}

# Names of earlier releases (of logs made without us): today's name, and what the value is multiplied with. Read in
# openrlhf/trainer of each release; SimpleRL trained with 0.5.
EARLIER = {
    "reward": ("rollout/reward_mean", 1.0),  # up to 0.9
    "response_length": ("rollout/response_length_mean", 1.0),  # up to 0.9
}
