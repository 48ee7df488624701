"""Which failed jobs are submitted again: those that Slurm interrupted and those that stopped to be resumed.

What the next attempt asks for, such as more memory, is in job_resources.py.

A job that ran out of memory or time, or lost its node, can succeed with more memory or on another node. A wrong setting
or a bug fails the same way every time, after waiting in the queue again. Snakemake's `retries` repeats both alike.

Snakemake replaces the exit status of a command by its own, 1. So the shell of each job writes it to a file named after
the Slurm job, and the Snakemake that submitted the job reads it there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from system.exit_status import RESUMABLE

# States of a job that Slurm ended (squeue's manual page, "JOB STATE CODES"). CANCELLED is somebody's decision.
LOST = "LOST"  # not Slurm's: cluster/ended_jobs.py
INTERRUPTED = ("OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "PREEMPTED", LOST)
# A job step that runs out of memory leaves its job in the state FAILED; only Slurm's lines in the job's output say why.
OVER_MEMORY = re.compile(
    r"oom.kill|out of memory handler|task \d+: out of memory|exceeded (job |step )?memory limit", re.IGNORECASE
)


def status_folder(work: Path) -> Path:
    """Folder of the exit statuses of jobs, one file per Slurm job."""
    return work.resolve() / "exit_status"


def record_exit_status(work: Path) -> str:
    """Shell code to run before a job's command, so that its exit status is written to a file when it ends."""
    folder = shlex.quote(str(status_folder(work)))
    record = shlex.quote(f"status=$?; echo $status > {folder}/$SLURM_JOB_ID")
    return f"mkdir -p {folder}; rm -f {folder}/$SLURM_JOB_ID; trap {record} EXIT; "


def read_exit_status(work: Path, job: str | None) -> int | None:
    """Exit status of the command of a Slurm job; None if it wrote none, because its shell was killed too."""
    try:
        return int((status_folder(work) / (job or "")).read_text())
    except (OSError, ValueError):
        return None


def worth_retrying(message: str, job_output: str, exit_status: int | None) -> bool:
    """Whether another attempt can end differently.

    Args:
        message: the executor's message about the failed job, which contains Slurm's state of it.
        job_output: Slurm's log of the job.
        exit_status: of the job's command, None if unknown.
    """
    interrupted = any(f"'{state}'" in message for state in INTERRUPTED)
    return interrupted or exit_status == RESUMABLE or OVER_MEMORY.search(job_output) is not None


def retry_only_interrupted(executor: type[Any], work: Path) -> None:
    """Make every other failure that this executor reports the last attempt of its job."""
    report: Callable[..., None] = executor.report_job_error
    if hasattr(report, "retries_only_interrupted"):  # Snakemake reads the Snakefile more than once
        return

    def report_job_error(self: Any, job_info: Any, msg: str | None = None, **kwargs: Any) -> None:
        output = "".join(
            Path(log).read_text(encoding="utf-8", errors="replace")
            for log in kwargs.get("aux_logs") or ()
            if log and Path(log).is_file()
        )
        job, status = job_info.job, read_exit_status(work, job_info.external_jobid)
        if not worth_retrying(msg or "", output, status) and job.restart_times >= job.attempt:
            job.attempt = job.restart_times + 1
        report(self, job_info, msg, **kwargs)

    report_job_error.retries_only_interrupted = True  # type: ignore[attr-defined]
    executor.report_job_error = report_job_error
