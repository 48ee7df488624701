"""24 points: GRPO with an outcome, a process and a length reward, and with running instead of group statistics."""
