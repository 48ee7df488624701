"""A small model in a dynamic maze: GRPO and PPO through verl."""
