"""Logic-RL: GRPO on Knights and Knaves through verl, in three stages."""
