"""The demo scale's base model: a few million parameters, trained from scratch on generated traces in minutes."""
