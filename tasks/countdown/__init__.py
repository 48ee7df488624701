"""Countdown: reach a target with given numbers, each used once."""
