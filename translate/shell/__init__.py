"""A launch script read as bash reads it, without running it."""
