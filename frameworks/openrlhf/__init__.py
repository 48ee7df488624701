"""OpenRLHF: PPO and GRPO through its own `train_ppo_ray`."""
