"""GSM8K with five rewards: GRPO through TRL on one GPU with 24 GB."""
