"""Loaded by Python at its start in every process of an OpenRLHF training on the CPU (this folder is on PYTHONPATH)."""

from recipes.frameworks.cpu import openrlhf

openrlhf.install()
