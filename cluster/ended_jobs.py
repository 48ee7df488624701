"""Jobs that Slurm no longer knows: whether they have ended is read from the exit file that each writes itself.

A controller without accounting forgets a job soon after its end (MinJobAge), and the executor plugin waits for ever for
a job that nobody knows. So the queue is looked at with each poll. A job that is missing there has ended if it has
left an exit file, with the status in it (cluster/retry_interrupted.py). Without one, if it is missing twice, or after
its time limit without a sign of life, it is lost and is submitted again.

A controller that was killed may start a running job once more, fail, and hold it in the queue for ever. Such a job
counts as missing, and is cancelled when it has ended or is lost.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import Any

from cluster import slurm
from cluster.retry_interrupted import LOST, read_exit_status
from system.quiet_time import QuietTime

POLL_SECONDS = 60.0  # at most; the plugin would stretch its polls to three minutes
FOREVER_SECONDS = 10**9
GRACE_SECONDS = 3600.0  # beyond a job's time limit
HELD = re.compile(
    r"requeued[ _]held|JobHoldMaxRequeue", re.IGNORECASE
)  # reasons of jobs that never start by themselves


class Queue:
    """What the polls of one Snakemake have seen of its jobs."""

    def __init__(self, work: Path) -> None:
        """Begin without jobs."""
        self.work = work
        self.absent: Counter[str] = Counter()  # polls in a row
        self.signs: dict[str, QuietTime] = {}
        self.held: set[str] = set()

    def look(self, jobs: Collection[str]) -> None:
        """Look for jobs in the queue; a controller that does not answer says nothing about them."""
        for job in jobs:
            self.signs.setdefault(job, QuietTime(POLL_SECONDS))
        status, output, _ = slurm.run(["squeue", "--me", "--noheader", "--states=all", "--format=%i %r"])
        if status:
            return
        reasons = dict(line.split(maxsplit=1) for line in output.split("\n") if " " in line.strip())
        self.held = {job for job, reason in reasons.items() if HELD.search(reason)}
        listed = reasons.keys() - self.held
        for job in jobs:
            if job in listed:
                del self.absent[job]
                self.signs[job].restart()
            else:
                self.absent[job] += 1

    def ending(self, job: str, limit_minutes: float) -> str | None:
        """Why a job counts as ended.

        Args:
            job: its id.
            limit_minutes: its time limit.

        Returns:
            An empty string if it succeeded, a sentence if it failed, None if it may be pending or running.
        """
        ending = self._ending(job, limit_minutes)
        if ending is not None and job in self.held:
            slurm.run(["scancel", job])
        return ending

    def _ending(self, job: str, limit_minutes: float) -> str | None:
        status = read_exit_status(self.work, job) if self.absent[job] else None
        if status is not None:
            return f"SLURM-job '{job}' failed: its command ended with status {status}" if status else ""
        if self.absent[job] > 1:
            state = accounted_state(job) or LOST
            return f"SLURM-job '{job}' is no longer in the queue and left no exit status, its state is '{state}'"
        if self.signs[job].seconds() > 60 * limit_minutes + GRACE_SECONDS:
            return f"SLURM-job '{job}' is '{LOST}': no sign of life for longer than its time limit"
        return None


def accounted_state(job: str) -> str:
    """How a job failed by Slurm's accounting, such as CANCELLED; empty without accounting, or if it did not fail."""
    if shutil.which("sacct") is None:
        return ""
    _, output, _ = slurm.run(["sacct", "-j", job, "-X", "-n", "-P", "-o", "state"])
    state = (re.findall(r"^[A-Z_]+", output) or [""])[-1]
    return "" if state in ("PENDING", "RUNNING", "COMPLETED") else state


def notice_ended(plugin: Any, work: Path) -> None:
    """Have the executor of a cluster notice jobs that Slurm has forgotten, and poll at least once a minute.

    Args:
        plugin: the module of the executor plugin.
        work: the work folder.
    """
    check: Callable[..., AsyncIterator[Any]] = plugin.Executor.check_active_jobs
    if hasattr(check, "notices_ended"):  # Snakemake reads the Snakefile more than once
        return
    queue = Queue(work)

    async def check_active_jobs(self: Any, active_jobs: list[Any]) -> AsyncIterator[Any]:
        await asyncio.to_thread(queue.look, [each.external_jobid for each in active_jobs])
        remaining = []
        for each in active_jobs:
            minutes = each.job.resources.get("runtime") or 0
            ending = await asyncio.to_thread(queue.ending, each.external_jobid, minutes)
            if ending is None:
                remaining.append(each)
            elif ending:
                self.report_job_error(each, msg=ending, aux_logs=[str(each.aux["slurm_logfile"])])
            else:
                self.report_job_success(each)
        async for each in check(self, remaining):
            yield each
        self.next_seconds_between_status_checks = min(self.next_seconds_between_status_checks, POLL_SECONDS)

    check_active_jobs.notices_ended = True  # type: ignore[attr-defined]
    plugin.Executor.check_active_jobs = check_active_jobs
    # Where squeue forgets soon, the plugin would ask sacct, which blocks for ever where there is no accounting.
    plugin.get_min_job_age = lambda: FOREVER_SECONDS
