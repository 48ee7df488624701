"""Jobs of a Snakemake that was killed: Slurm runs them on, and they would write what the next one's jobs write."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cluster import slurm
from contracts.errors import UserError

PATIENCE_SECONDS = 300.0  # for cancelled jobs to be gone; Slurm gives them KillWait (30 s by default) to end


def prefix(work: Path) -> str:
    """What the names of all jobs begin with that use a work folder; one Snakemake at a time uses it."""
    return f"cz-{hashlib.sha256(str(work.resolve()).encode()).hexdigest()[:10]}"


def name_jobs(executor: type[Any], work: Path) -> None:
    """Have the executor begin its jobs' names so; its own setting is the profile's, which knows no folder."""
    set_up: Callable[..., None] = executor.__post_init__

    def __post_init__(self: Any, *arguments: Any, **named: Any) -> None:
        self.workflow.executor_settings.jobname_prefix = prefix(work)
        set_up(self, *arguments, **named)

    executor.__post_init__ = __post_init__


def queued(work: Path) -> list[str]:
    """Ids of this user's jobs for a work folder that wait or run."""
    status, output, error = slurm.run(["squeue", "--me", "--noheader", "--format=%i %j"])
    if status:
        said = error.splitlines()[-1] if error else f"status {status}"
        raise UserError(f"squeue does not answer ({said}): snakemake preflight --profile slurm says more")
    named = (line.split(maxsplit=1) for line in output.splitlines() if " " in line)
    return [job for job, name in named if name.startswith(prefix(work))]


def cancel(work: Path) -> list[str]:
    """Cancel what is left of an earlier Snakemake in this work folder, and wait for its end; returns the jobs' ids.

    Raises:
        UserError: Slurm does not answer, or they are still there after five minutes.
    """
    found = queued(work)
    if not found:
        return []
    slurm.run(["scancel", *found])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while queued(work):
        if time.monotonic() > deadline:
            raise UserError(
                f"jobs {', '.join(found)} of an earlier snakemake are cancelled but not gone; wait for their end "
                "(squeue --me), and give the command again"
            )
        time.sleep(1)
    return found
