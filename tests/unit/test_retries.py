"""Which failed Slurm jobs are submitted again: states, Slurm's own lines, and the exit status of the job's command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import retry_interrupted
from contracts.run_file import ROOT
from system.exit_status import RESUMABLE

MESSAGE = "SLURM-job '5' failed, SLURM status is: '{}'. Detailed failure reason unavailable"
COMMAND = """
from system.errors import StoppedInTime, UserError, run_command
def main():
    raise {error}("after step 7 of 9", code="some-mistake")
run_command(main)
"""


@given(st.sampled_from(retry_interrupted.INTERRUPTED), st.text(), st.none() | st.integers(0, 255))
def test_an_interrupted_job_is_retried(state: str, output: str, status: int | None) -> None:
    assert retry_interrupted.worth_retrying(MESSAGE.format(state), output, status)


@pytest.mark.parametrize(
    ("state", "output", "retried"),
    [
        ("FAILED", "slurmstepd: error: Detected 1 oom_kill event in StepId=5.0. Some of the step tasks …", True),
        ("FAILED", "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=5.0 cgroup.", True),
        ("FAILED", "srun: error: n1: task 0: Out Of Memory", True),
        ("FAILED", "slurmstepd-n1: error: StepId=2.0 exceeded memory limit (323444736 > 104857600), being …", True),
        ("FAILED", "Error: there is no run 'openr2'; there are: openr1", False),
        ("FAILED", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", False),
        ("CANCELLED", "slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***", False),
    ],
)
def test_a_failed_job_is_retried_where_slurm_reports_memory(state: str, output: str, retried: bool) -> None:
    assert retry_interrupted.worth_retrying(MESSAGE.format(state), output, 1) == retried
    assert retry_interrupted.worth_retrying(MESSAGE.format(state), output, None) == retried


def run_job(work: Path, job: str, command: str) -> int:
    """Run a job's command as Snakemake does in a Slurm job: in bash, with its output through tee."""
    script = f"set -euo pipefail; {retry_interrupted.record_exit_status(work)} {command} 2>&1 | tee -a '{work}.log'"
    return subprocess.run(["bash", "-c", script], cwd=ROOT, env={**os.environ, "SLURM_JOB_ID": job}).returncode


def attempts_after_failure(work: Path, job: str) -> int:
    """Attempts that Snakemake counts of a job with three retries, after the executor reported its first failure."""

    class Executor:
        def report_job_error(self, job_info: SimpleNamespace, msg: str | None = None, **_: object) -> None:
            """Snakemake's, which retries while restart_times >= attempt."""

    retry_interrupted.retry_only_interrupted(Executor, work)
    retry_interrupted.retry_only_interrupted(Executor, work)  # Snakemake reads the Snakefile more than once
    failed = SimpleNamespace(job=SimpleNamespace(attempt=1, restart_times=3), external_jobid=job)
    Executor().report_job_error(failed, MESSAGE.format("FAILED"), aux_logs=[str(work.with_suffix(".log")), None])
    return failed.job.attempt


@pytest.mark.parametrize(("error", "status", "attempts"), [("StoppedInTime", RESUMABLE, 1), ("UserError", 1, 4)])
def test_a_command_that_stopped_in_time_is_retried(tmp_path: Path, error: str, status: int, attempts: int) -> None:
    work = tmp_path / "my work"
    assert run_job(work, "7", f"{sys.executable} -c '{COMMAND.format(error=error)}'") == status
    assert retry_interrupted.read_exit_status(work, "7") == status
    assert attempts_after_failure(work, "7") == attempts
    assert attempts_after_failure(work, "8") == 4  # another job


def test_a_job_that_succeeded_or_was_killed_leaves_no_status(tmp_path: Path) -> None:
    assert run_job(tmp_path / "work", "7", "true") == 0
    assert run_job(tmp_path / "work", "7", "kill -9 $$;") == -9
    assert retry_interrupted.read_exit_status(tmp_path / "work", "7") is None
    assert retry_interrupted.read_exit_status(tmp_path / "work", None) is None
