"""TinyZero: PPO and GRPO on Countdown through verl."""
