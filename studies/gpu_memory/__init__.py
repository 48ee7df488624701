"""A study; see README.md."""
