"""Old names of options, keys and commands: accepted for one release, with a warning."""

from __future__ import annotations

import runpy
import sys


def warn(old: str, new: str) -> None:
    """Say on standard error, in one line, that a name has changed."""
    print(f"warning: {old} is now called {new}; the old name goes in the next release", file=sys.stderr)


def run(old: str, new: str) -> None:
    """Run the module that a command is now called by, after a warning.

    Args:
        old: dotted name of the module that was run.
        new: the present one.
    """
    warn(f"python -m {old}", f"python -m {new}")
    runpy.run_module(new, run_name="__main__", alter_sys=True)
