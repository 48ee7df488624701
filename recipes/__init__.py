"""Published recipes: their runs and rewards, and the base models they start from."""
