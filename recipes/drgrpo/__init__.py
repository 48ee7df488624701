"""Dr. GRPO: group-relative advantages without the standard deviation, and a loss without a length in it."""
