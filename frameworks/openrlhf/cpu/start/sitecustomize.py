"""Python loads it at the start of every process of an OpenRLHF training on the CPU: this folder is on PYTHONPATH.

It takes the place of frameworks/start/sitecustomize.py, so it does the same where that would be loaded.
"""

import os
import sys

from frameworks import listening, tape
from frameworks.openrlhf.cpu import rewrites

if tape.VARIABLE in os.environ:
    from frameworks.openrlhf import lockstep

    lockstep.install()
if "precision" not in tape.released(os.environ):
    rewrites.add(rewrites.FLOAT32_RULES, rewrites.FLOAT32)
rewrites.install()
if str(listening.START) in sys.path:
    listening.keep_to_loopback()
