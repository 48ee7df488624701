"""Arithmetic in which multiplication goes first: the generated task of the demo scale."""
