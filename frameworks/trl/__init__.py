"""TRL: GRPO through its own `trl.scripts.grpo`."""
