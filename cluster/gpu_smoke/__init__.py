"""The full-scale path on one GPU, with a small model: `make gpu-smoke`. Its trainings are recipes/gpu_smoke/*.yaml."""
