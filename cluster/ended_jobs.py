"""Which jobs of a cluster have ended, and how: one squeue a poll, and the exit file that each job writes itself.

The executor plugin drops its jobs when squeue fails five times, and waits for ever for a job that the controller has
forgotten, which without accounting it does soon after the job's end (MinJobAge). So its polls are replaced. A job that
is missing in the queue has ended if it has left an exit file, with the status in it (cluster/retry_interrupted.py).
Without one, if it is missing twice, or after its time limit while squeue does not answer, it is lost and is submitted
again.

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

POLL_SECONDS = 60.0  # at most, ten seconds later each time that no job has ended
SQUEUE_SECONDS = 120.0  # a busy controller is slow
GRACE_SECONDS = 3600.0  # beyond a job's time limit
COMPLETING_POLLS = 10  # for a node's last work; beyond, its epilogue hangs
FAILED = ("BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "OUT_OF_MEMORY", "TIMEOUT")
RESTARTED = ("NODE_FAIL", "PREEMPTED")  # by Slurm itself, unless the site forbids it
HELD = re.compile(
    r"requeued[ _]held|JobHoldMaxRequeue", re.IGNORECASE
)  # reasons of jobs that never start by themselves
# Reasons of pending jobs that last until somebody changes something
LASTING = re.compile(
    r"Partition(Time|Node)Limit|BadConstraints|NotAllowed|Invalid(Account|QOS)|PerJob|JobHeld|held state"
    r"|ReservationDeleted"
)


class Queue:
    """What the polls of one Snakemake have seen of its jobs.

    Args:
        work: the work folder.
        say: prints a line.
    """

    def __init__(self, work: Path, say: Callable[[str], None]) -> None:
        """Begin without jobs."""
        self.work, self.say = work, say
        self.states: dict[str, str] = {}
        self.held: set[str] = set()
        self.said: set[tuple[str, str]] = set()  # jobs and reasons
        self.absent: Counter[str] = Counter()  # polls in a row, like the next
        self.completing: Counter[str] = Counter()
        self.signs: dict[str, QuietTime] = {}
        self.silent = 0

    def look(self, jobs: Collection[str]) -> None:
        """Look for jobs in the queue; a controller that does not answer says nothing about them."""
        for job in jobs:
            self.signs.setdefault(job, QuietTime(POLL_SECONDS))
        command = ["squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%r"]
        status, output, error = slurm.run(command, SQUEUE_SECONDS)
        if status:
            self.silent += 1
            if self.silent == 1:
                reason = slurm.failure_reason(status, error)
                self.say(f"squeue does not answer ({reason}); jobs go on, and it is asked again")
            return
        if self.silent:
            self.say("squeue answers again")
        self.silent = 0
        rows = {job: (state, reason) for job, state, reason in _rows(output)}
        self.states = {job: state for job, (state, _) in rows.items()}
        self.held = {job for job, (_, reason) in rows.items() if HELD.search(reason)}
        lasting = {(job, rows[job][1]) for job in jobs if job in rows and LASTING.search(rows[job][1])}
        for job, reason in sorted(lasting - self.said):
            self.say(f"Slurm does not start job {job} before somebody changes it or a limit ({reason})")
        self.said |= lasting
        for job in jobs:
            state = self.states.get(job, "")
            is_absent = not state or job in self.held or state in RESTARTED
            self.absent[job] = self.absent[job] + 1 if is_absent else 0
            self.completing[job] = self.completing[job] + 1 if state == "COMPLETING" else 0
            if not is_absent:
                self.signs[job].restart()

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
        state, status = self.states.get(job, ""), read_exit_status(self.work, job)
        code = f", its command ended with status {status}" if status else ""
        is_silent = self.silent and self.signs[job].seconds() > 60 * limit_minutes + GRACE_SECONDS
        if self.silent and not is_silent:
            return None
        if state == "COMPLETED":
            return ""
        if state in FAILED:
            return f"SLURM-job '{job}' failed, its state is '{state}'{code}"
        is_stuck = is_silent or self.completing[job] > COMPLETING_POLLS
        if (self.absent[job] or is_stuck) and status is not None and state not in RESTARTED:
            return f"SLURM-job '{job}' failed{code}" if status else ""
        if self.absent[job] > 1 or is_stuck:
            state = state if state in RESTARTED else accounted_state(job) or LOST
            return f"SLURM-job '{job}' is not in the queue or is stuck, and left no exit status; its state is '{state}'"
        return None


def _rows(output: str) -> list[list[str]]:
    """Id, state and reason of each job that squeue lists."""
    rows = (line.strip().split("|", 2) for line in output.split("\n"))
    return [row for row in rows if len(row) == 3]


def accounted_state(job: str) -> str:
    """How a job failed by Slurm's accounting, such as CANCELLED; empty without accounting, or if it did not fail."""
    if shutil.which("sacct") is None:
        return ""
    _, output, _ = slurm.run(["sacct", "-j", job, "-X", "-n", "-P", "-o", "state"])
    state = (re.findall(r"^[A-Z_]+", output) or [""])[-1]
    return "" if state in ("PENDING", "RUNNING", "COMPLETED") else state


def notice_ended(executor: type[Any], work: Path, say: Callable[[str], None]) -> None:
    """Have the executor of a cluster see by itself which jobs have ended, once a minute.

    Args:
        executor: of the executor plugin.
        work: the work folder.
        say: prints a line.
    """
    if hasattr(executor.check_active_jobs, "notices_ended"):  # Snakemake reads the Snakefile more than once
        return
    queue = Queue(work, say)

    async def check_active_jobs(self: Any, active_jobs: list[Any]) -> AsyncIterator[Any]:
        settings, remaining = self.workflow.executor_settings, 0
        if active_jobs:
            await asyncio.to_thread(queue.look, [each.external_jobid for each in active_jobs])
        for each in active_jobs:
            minutes, log = each.job.resources.get("runtime") or 0, Path(each.aux["slurm_logfile"])
            ending = await asyncio.to_thread(queue.ending, each.external_jobid, minutes)
            if ending is None:
                remaining += 1
                yield each
            elif ending:
                self.report_job_error(each, msg=ending, aux_logs=[str(log)])
            else:
                self.report_job_success(each)
                if not settings.keep_successful_logs:
                    log.unlink(missing_ok=True)
        pause = settings.init_seconds_before_status_checks
        if remaining == len(active_jobs) > 0:
            pause = min(self.next_seconds_between_status_checks + 10, POLL_SECONDS)
        self.next_seconds_between_status_checks = pause

    check_active_jobs.notices_ended = True  # type: ignore[attr-defined]
    executor.check_active_jobs = check_active_jobs
