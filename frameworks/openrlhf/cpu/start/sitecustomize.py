"""Python loads it at the start of every process of an OpenRLHF training on the CPU: this folder is on PYTHONPATH."""

from frameworks.openrlhf.cpu import rewrites

rewrites.install()
