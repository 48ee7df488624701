"""What the translator reads of a script, and what bash gives it: in both, `train` is the training."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.waiting import WORKFLOW_LIMIT
from translate.script_commands import training_commands

ENTRY = re.compile(r"train\Z")
HEAD = "train() { printf '%s\\0' \"$@\"; printf '\\1\\0'; }; export -f train; srun() { \"$@\"; }\n"


def read(script: str, **outside: str) -> list[list[str]]:
    return [one.arguments for one in training_commands(script, ENTRY, outside, Path())]


def run(script: str, *arguments: str, **outside: str) -> list[list[str]]:
    """What bash gives `train`."""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", HEAD + script, "script", *arguments], capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", **outside}, check=False, stdin=subprocess.DEVNULL, timeout=WORKFLOW_LIMIT,
    )  # fmt: skip
    return [call.split("\0")[:-1] for call in done.stdout.split("\1\0")[:-1]]
