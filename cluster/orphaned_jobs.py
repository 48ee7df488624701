"""Slurm jobs of a Snakemake that was killed: they keep running and would write the same files as new jobs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cluster import slurm
from system.errors import UserError

CANCEL_SECONDS = 300.0  # until cancelled jobs have to be gone; Slurm gives them KillWait (30 s by default) to end


def job_name_prefix(work: Path) -> str:
    """Prefix of the names of all jobs of a work folder, which one Snakemake at a time uses."""
    return f"cz-{hashlib.sha256(str(work.resolve()).encode()).hexdigest()[:10]}"


def name_jobs(executor: type[Any], work: Path) -> None:
    """Make the executor use the prefix. Its own setting is part of the profile, which does not know the folder."""
    set_up: Callable[..., None] = executor.__post_init__

    def __post_init__(self: Any, *arguments: Any, **named: Any) -> None:
        self.workflow.executor_settings.jobname_prefix = job_name_prefix(work)
        set_up(self, *arguments, **named)

    executor.__post_init__ = __post_init__


def queued_jobs(work: Path) -> list[str]:
    """Ids of this user's pending and running jobs of a work folder."""
    status, output, error = slurm.run(["squeue", "--me", "--noheader", "--format=%i %j"])
    if status:
        raise UserError(
            f"squeue failed ({slurm.failure_reason(status, error)}): run snakemake preflight --profile slurm",
            code="slurm-command-failed",
            command="squeue",
        )
    named = (line.split(maxsplit=1) for line in output.split("\n") if " " in line)
    return [job for job, name in named if name.startswith(job_name_prefix(work))]


def cancel(work: Path) -> list[str]:
    """Cancel the jobs that an earlier Snakemake left for this work folder and wait for their end; return their ids.

    Raises:
        UserError: squeue fails, or the jobs are still there after five minutes.
    """
    jobs = queued_jobs(work)
    if not jobs:
        return []
    slurm.run(["scancel", *jobs])
    deadline = time.monotonic() + CANCEL_SECONDS
    while queued_jobs(work):
        if time.monotonic() > deadline:
            raise UserError(
                f"jobs {', '.join(jobs)} of an earlier snakemake are cancelled but still listed: wait until "
                "squeue --me no longer lists them and run the command again",
                code="jobs-still-listed",
                jobs=jobs,
            )
        time.sleep(1)
    return jobs
