"""Old names of options, keys and commands: accepted for one release, with a warning."""

from __future__ import annotations

import sys


def warn(old: str, new: str) -> None:
    """Say on standard error, in one line, that a name has changed."""
    print(f"warning: {old} is now called {new}; the old name goes in the next release", file=sys.stderr)
