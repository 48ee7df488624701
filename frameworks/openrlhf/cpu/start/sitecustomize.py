"""Loaded by Python at its start in every process of an OpenRLHF training on the CPU (this folder is on PYTHONPATH)."""

from frameworks.openrlhf.cpu import rewrites as openrlhf

openrlhf.install()
