"""verl: PPO and GRPO through its own `main_ppo`."""
