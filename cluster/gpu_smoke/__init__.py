"""The full-scale path on one GPU, with a small model: `make gpu-smoke`. Each run file here is a row of its table."""
