"""Python loads it at the start of every process of an OpenRLHF training: this folder is on PYTHONPATH.

It takes the place of frameworks/python_startup/sitecustomize.py, so it does the same where that would be loaded.
"""

import os
import sys

from frameworks import free_ports, loopback, ray_patience, recorded_rollouts, update_tokens
from frameworks.openrlhf import checkpoint_timer

if os.environ.get("DS_ACCELERATOR") == "cpu":
    from frameworks.openrlhf.cpu import rewrites

    if recorded_rollouts.VARIABLE in os.environ:
        from frameworks.openrlhf import fixed_rollouts

        fixed_rollouts.install()
    if "precision" not in recorded_rollouts.released_parts(os.environ):
        rewrites.add(rewrites.FLOAT32_RULES, rewrites.FLOAT32)
    rewrites.install()
if str(loopback.STARTUP) in sys.path:
    loopback.keep_to_loopback()
    free_ports.install()
    ray_patience.install()
    update_tokens.install()
checkpoint_timer.install()  # after what rewrites the same module
