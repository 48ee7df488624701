"""Trainings that reproduce nothing: rows of `make gpu-smoke`, left out of `reproduce=all` (recipes.runs.run_names)."""
