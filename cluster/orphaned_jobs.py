"""Slurm jobs of a Snakemake that was killed: those that this one would start the same are waited for, others cancelled.

They keep running when a terminal is closed, and would write the same files as new jobs. Each submission is recorded in
the work folder: the work that the job does, as a hash, and its id.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cluster import slurm
from cluster.snakemake_internals import SubmittedJobInfo
from system import durable
from system.errors import UserError

CANCEL_SECONDS = 300.0  # until cancelled jobs have to be gone; Slurm gives them KillWait (30 s by default) to end
PICKED_UP = "Picked up {}: jobs of a snakemake that ended before them; none is submitted again."
CANCELLED = "Cancelled {}: jobs of a snakemake that was killed; new jobs resume their work."
OF_THIS_MACHINE = ("_cores", "_nodes", "tmpdir")  # resources that are no request to Slurm


def job_name_prefix(work: Path) -> str:
    """Prefix of the names of all jobs of a work folder, which one Snakemake at a time uses."""
    return f"cz-{hashlib.sha256(str(work.resolve()).encode()).hexdigest()[:10]}"


def name_jobs(executor: type[Any], work: Path) -> None:
    """Make the executor use the prefix. Its own setting is part of the profile, which does not know the folder.

    It submits each job by itself, because a job asks for memory and time of its own, and an array cannot.
    """
    set_up: Callable[..., None] = executor.__post_init__

    def __post_init__(self: Any, *arguments: Any, **named: Any) -> None:
        settings = self.workflow.executor_settings
        settings.jobname_prefix = job_name_prefix(work)
        if settings.array_jobs:
            self.logger.warning("slurm-array-jobs is left out: each job asks for memory and time of its own")
            settings.array_jobs = None
        set_up(self, *arguments, **named)

    executor.__post_init__ = __post_init__


def queued_jobs(work: Path) -> dict[str, str]:
    """State of this user's pending and running jobs of a work folder, by id."""
    status, output, error = slurm.run(["squeue", "--me", "--noheader", "--format=%i %T %j"])
    if status:
        raise UserError(
            f"squeue failed ({slurm.failure_reason(status, error)}): run snakemake preflight --profile slurm",
            code="slurm-command-failed",
            command="squeue",
        )
    rows = (line.split(maxsplit=2) for line in output.split("\n"))
    return {row[0]: row[1] for row in rows if len(row) == 3 and row[2].startswith(job_name_prefix(work))}


class Submissions:
    """What a work folder has submitted, and which of it is waited for.

    Args:
        work: the work folder.
    """

    def __init__(self, work: Path) -> None:
        """Wait for nothing yet."""
        self.work, self.folder = work, work / "submitted"
        self.kept: dict[str, dict[str, Any]] = {}  # by the record's name
        self.lock = threading.Lock()

    def record(self, job: Any, number: str, log: str) -> None:
        """Remember the Slurm job of a job of Snakemake."""
        record = {"id": number, "log": log, "request": request(job)}
        with suppress(OSError):  # it will be cancelled instead of picked up
            self.folder.mkdir(parents=True, exist_ok=True)
            durable.write_text(self.folder / work_hash(job), json.dumps(record))

    def settle(self, dag: Any) -> list[str]:
        """Keep the Slurm jobs that do what can be submitted now, cancel the others, and wait for their end.

        Args:
            dag: Snakemake's.

        Returns:
            What was done, a line each.

        Raises:
            UserError: squeue fails, or cancelled jobs are still there after five minutes.
        """
        jobs = [job for job in dag.needrun_jobs() if not job.is_local]
        queued = queued_jobs(self.work) if jobs else {}
        for job in (job for job in jobs if not any(map(dag.needrun, dag.dependencies[job]))):
            record = self.read(name := work_hash(job))
            state = queued.get(record.get("id", ""))
            if state and (state != "PENDING" or record["request"] == request(job)):
                self.kept[name] = record
        kept = [record["id"] for record in self.kept.values()]
        others = [number for number in queued if number not in kept]
        cancel(self.work, others)
        lines = [(kept, PICKED_UP), (others, CANCELLED)]
        return [text.format(", ".join(numbers)) for numbers, text in lines if numbers]

    def read(self, name: str) -> dict[str, Any]:
        """A record; empty if there is none."""
        try:
            record = json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) and record.keys() >= {"id", "log", "request"} else {}

    def take(self, job: Any) -> dict[str, Any] | None:
        """The record of the job that is waited for instead of a new one; once."""
        with self.lock:
            return self.kept.pop(work_hash(job), None) if self.kept else None


def work_hash(job: Any) -> str:
    """What a job of Snakemake does: its command, and its input files as they are."""
    inputs = [(str(file), _changed(Path(str(file)))) for file in job.input]
    work = [job.rule.name, str(job.shellcmd), inputs, [str(file) for file in job.output]]
    return hashlib.sha256(json.dumps(work).encode()).hexdigest()[:20]


def _changed(file: Path) -> int:
    return file.stat().st_mtime_ns if file.exists() else 0


def request(job: Any) -> dict[str, str]:
    """What a job requests from Slurm."""
    resources: Mapping[str, Any] = dict(job.resources.items())
    return {name: str(value) for name, value in sorted(resources.items()) if name not in OF_THIS_MACHINE}


def cancel(work: Path, jobs: list[str]) -> None:
    """Cancel jobs and wait for their end.

    Raises:
        UserError: squeue fails, or the jobs are still there after five minutes.
    """
    if jobs:
        slurm.run(["scancel", *jobs])
    deadline = time.monotonic() + CANCEL_SECONDS
    while jobs and set(jobs) & queued_jobs(work).keys():
        if time.monotonic() > deadline:
            raise UserError(
                f"jobs {', '.join(jobs)} of an earlier snakemake are cancelled but still listed: wait until "
                "squeue --me no longer lists them and run the command again",
                code="jobs-still-listed",
                jobs=jobs,
            )
        time.sleep(1)


def pick_up(executor: type[Any], work: Path) -> Submissions:
    """Have the executor record what it submits, and wait for the jobs that are kept instead of submitting them.

    Args:
        executor: of the executor plugin.
        work: the work folder.

    Returns:
        What it submits: the same each time, as Snakemake reads the Snakefile more than once.
    """
    run_job, report = executor.run_job, executor.report_job_submission
    if known := getattr(run_job, "submissions", None):
        return known  # type: ignore[no-any-return]
    submissions = Submissions(work)

    def run_or_wait(self: Any, job: Any) -> None:
        if (record := submissions.take(job)) is None:
            run_job(self, job)
            return
        aux = {"slurm_logfile": Path(record["log"])}
        self._report_job_submission_threadsafe(SubmittedJobInfo(job, external_jobid=record["id"], aux=aux))

    def report_job_submission(self: Any, job_info: Any, *arguments: Any, **named: Any) -> None:
        submissions.record(job_info.job, job_info.external_jobid, str(job_info.aux["slurm_logfile"]))
        report(self, job_info, *arguments, **named)

    run_or_wait.submissions = submissions  # type: ignore[attr-defined]
    executor.run_job, executor.report_job_submission = run_or_wait, report_job_submission
    return submissions
