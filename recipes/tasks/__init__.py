"""Old name of `tasks`: its commands work for one more release."""
