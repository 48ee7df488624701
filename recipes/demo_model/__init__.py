"""The demo scale's base model: half a million parameters, trained from scratch on generated traces in minutes."""
