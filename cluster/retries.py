"""Which failed jobs Slurm's executor submits again: those that were cut off, never those that ended by themselves.

A job that ran out of memory or time, or lost its node, gets more of it or another one. A wrong setting fails the same
way every time, after waiting in the queue again. Snakemake repeats both alike, and its executor knows which it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

# States of a job that Slurm ended (squeue's manual page, "JOB STATE CODES"). CANCELLED is somebody's wish.
CUT_OFF = ("OUT_OF_MEMORY", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "PREEMPTED")
# A step that runs out of memory leaves its job in the state FAILED; only the job's own output tells.
OVER_MEMORY = re.compile(
    r"oom.kill|out of memory handler|task \d+: out of memory|exceeded (job |step )?memory limit", re.IGNORECASE
)
# A training that saved a checkpoint and ended before Slurm would have (frameworks/__main__.py).
STOPPED = re.compile(r"stopped after step \d+ of \d+, in time before its job's end")


def worth_retrying(message: str, job_output: str) -> bool:
    """Whether another attempt can end differently.

    Args:
        message: what the executor says of the failed job; Slurm's state of it stands in it.
        job_output: what Slurm wrote of the job.
    """
    states = any(f"'{state}'" in message for state in CUT_OFF)
    return states or any(said.search(job_output) for said in (OVER_MEMORY, STOPPED))


def only_where_cut_off(executor: type[Any]) -> None:
    """Have this executor report any other failure as a job's last attempt."""
    report: Callable[..., None] = executor.report_job_error
    if hasattr(report, "asks_whether"):  # Snakemake reads the Snakefile more than once
        return

    def report_job_error(self: Any, job_info: Any, msg: str | None = None, **kwargs: Any) -> None:
        output = "".join(
            Path(log).read_text(encoding="utf-8", errors="replace")
            for log in kwargs.get("aux_logs") or ()
            if log and Path(log).is_file()
        )
        job = job_info.job
        if not worth_retrying(msg or "", output) and job.restart_times >= job.attempt:
            job.attempt = job.restart_times + 1
        report(self, job_info, msg, **kwargs)

    report_job_error.asks_whether = worth_retrying  # type: ignore[attr-defined]
    executor.report_job_error = report_job_error
