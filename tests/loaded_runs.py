"""Every run at one scale, read once for all test files of a process."""

from __future__ import annotations

from functools import cache

from contracts.run_file import Run
from recipes.runs import load_run, run_names


@cache
def runs(scale: str) -> tuple[Run, ...]:
    """All of `run_names()`, in its order; tests leave them as they are."""
    return tuple(load_run(name, scale) for name in run_names())
