"""GPU-hours, waiting time and wall time of the jobs, from Slurm's accounting, as a Markdown page.

snakemake efficiency --profile slurm
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cluster import slurm
from contracts import durable
from contracts.errors import UserError, run_command

# The executor's log line of a submission; the path of the job's log contains the rule and its wildcards.
SUBMITTED = re.compile(
    r"has been submitted with SLURM jobid (\d+) \(log: .*/(?:rule|group)_([^/]+)/(?:(.*)/)?\d+\.log\)"
)
FORMAT = "JobIDRaw,State,Submit,Start,End,ElapsedRaw,AllocTRES"
JOBS_PER_QUERY = 500


@dataclass(frozen=True)
class Job:
    """One job of the workflow; times in hours."""

    rule: str
    wildcards: str
    state: str
    waited: float
    ran: float
    gpus: int
    cpus: int


def submitted(logs: Sequence[Path]) -> dict[str, tuple[str, str]]:
    """Rule and wildcards of every Slurm job in Snakemake's logs, by its id."""
    found = {}
    for log in logs:
        for job, rule, wildcards in SUBMITTED.findall(log.read_text(encoding="utf-8", errors="replace")):
            found[job] = (rule, wildcards)
    return found


def read_jobs(output: str, known: dict[str, tuple[str, str]]) -> list[Job]:
    """Parse `sacct --allocations --parsable2 --noheader --duplicates` in FORMAT; a requeued job has several lines."""
    found = []
    for line in filter(str.strip, output.split("\n")):
        job, state, submit, start, _, seconds, resources = line.split("|")
        if job not in known:
            continue
        counts = dict(word.split("=", 1) for word in resources.split(",") if "=" in word)
        started = start[:1].isdigit()  # else "Unknown"
        waited = (_time(start) - _time(submit)).total_seconds() / 3600 if started else 0.0
        found.append(
            Job(
                *known[job],
                state=state.split()[0],
                waited=waited,
                ran=int(seconds or 0) / 3600,
                gpus=int(counts.get("gres/gpu", 0)),
                cpus=int(counts.get("cpu", 0)),
            )
        )
    return found


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S")


def page(jobs: Sequence[Job]) -> str:
    """The Markdown page: one table by rule, one of all jobs with GPUs."""
    columns = ["jobs", "not completed", "GPU-hours", "lost GPU-hours", "CPU-hours", "median wait, h", "longest wait, h"]
    lines = [f"# Resources used by {len(jobs)} jobs", "", f"| rule | {' | '.join(columns)} |", "|---" * 8 + "|"]
    for rule in sorted({job.rule for job in jobs}):
        of_it = [job for job in jobs if job.rule == rule]
        failed = [job for job in of_it if job.state not in ("COMPLETED", "RUNNING", "PENDING")]
        waits = sorted(job.waited for job in of_it)
        cells = [len(of_it), len(failed), _gpu_hours(of_it), _gpu_hours(failed)]
        cells += [sum(job.ran * job.cpus for job in of_it), waits[len(waits) // 2], waits[-1]]
        lines.append(f"| {rule} | {' | '.join(f'{cell:,.4g}' for cell in cells)} |")
    lines += ["", "| job with GPUs | state | GPUs | waited h | ran h | GPU-hours |", "|---|---|---|---|---|---|"]
    for job in sorted((job for job in jobs if job.gpus), key=lambda job: (job.rule, job.wildcards)):
        figures = f"{job.gpus} | {job.waited:.2f} | {job.ran:.2f} | {job.ran * job.gpus:.1f}"
        lines.append(f"| {job.rule} {job.wildcards} | {job.state} | {figures} |")
    return "\n".join(lines) + "\n"


def _gpu_hours(jobs: Sequence[Job]) -> float:
    return sum(job.ran * job.gpus for job in jobs)


def query(known: dict[str, tuple[str, str]]) -> list[Job]:
    """The jobs in Slurm's accounting; raises UserError if there is no accounting."""
    jobs, ids = [], sorted(known, key=int)
    words = ["sacct", "--allocations", "--parsable2", "--noheader", "--duplicates", f"--format={FORMAT}"]
    for first in range(0, len(ids), JOBS_PER_QUERY):
        status, output, error = slurm.run([*words, f"--jobs={','.join(ids[first : first + JOBS_PER_QUERY])}"])
        if status:
            raise UserError(f"sacct failed ({slurm.reason(status, error)}): this cluster may keep no accounting")
        jobs += read_jobs(output, known)
    return jobs


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m cluster.efficiency", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--logs", type=Path, default=Path(".snakemake/log"), help="folder of Snakemake's logs")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    known = submitted(sorted(arguments.logs.glob("*.log")))
    if not known:
        raise UserError(
            f"no log in {arguments.logs} contains a job submitted to Slurm: run snakemake --profile slurm first"
        )
    jobs = query(known)
    if not jobs:
        raise UserError(
            f"Slurm's accounting has none of the {len(known)} jobs in {arguments.logs}: it may have expired"
        )
    text = page(jobs)
    durable.write_text(arguments.output, text)
    print(f"{text}\nWritten to {arguments.output}")


if __name__ == "__main__":
    run_command(main)
