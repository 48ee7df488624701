"""Skywork-OR1: longer completions in each stage, and an entropy that is held up (arXiv:2505.22312)."""
