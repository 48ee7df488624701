"""OpenR1: GRPO through TRL with rewards for a right answer and for the format."""
