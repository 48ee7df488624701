"""What jobs have taken of a cluster: GPU-hours, waiting and wall time, from Slurm's accounting, as a Markdown page.

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
from contracts.errors import UserError, run_command

# What Snakemake's executor writes of each submission, with the rule and its wildcards in the path of the job's output.
SUBMITTED = re.compile(
    r"has been submitted with SLURM jobid (\d+) \(log: .*/(?:rule|group)_([^/]+)/(?:(.*)/)?\d+\.log\)"
)
FORMAT = "JobIDRaw,State,Submit,Start,End,ElapsedRaw,AllocTRES"
ASKED_AT_ONCE = 500


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
    """Rule and wildcards of every Slurm job that Snakemake's own logs tell of."""
    found = {}
    for log in logs:
        for job, rule, wildcards in SUBMITTED.findall(log.read_text(encoding="utf-8", errors="replace")):
            found[job] = (rule, wildcards)
    return found


def read_jobs(output: str, known: dict[str, tuple[str, str]]) -> list[Job]:
    """From `sacct --allocations --parsable2 --noheader --duplicates` in FORMAT; a requeued job has several lines."""
    found = []
    for line in filter(str.strip, output.splitlines()):
        job, state, submit, start, _, seconds, resources = line.split("|")
        if job not in known:
            continue
        counts = dict(word.split("=", 1) for word in resources.split(",") if "=" in word)
        waited = (_time(start) - _time(submit)).total_seconds() / 3600 if _is_time(start) else 0.0
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


def _is_time(text: str) -> bool:
    return text[:1].isdigit()


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S")


def page(jobs: Sequence[Job]) -> str:
    """The Markdown page: by rule, then every job that had GPUs."""
    columns = ["jobs", "not completed", "GPU-hours", "lost of them", "CPU-hours", "waited, median h", "waited, most h"]
    lines = [f"# What {len(jobs)} jobs have taken", "", f"| rule | {' | '.join(columns)} |", "|---" * 8 + "|"]
    for rule in sorted({job.rule for job in jobs}):
        of_it = [job for job in jobs if job.rule == rule]
        failed = [job for job in of_it if job.state not in ("COMPLETED", "RUNNING", "PENDING")]
        waits = sorted(job.waited for job in of_it)
        cells = [
            len(of_it),
            len(failed),
            _gpu_hours(of_it),
            _gpu_hours(failed),
            sum(job.ran * job.cpus for job in of_it),
        ]
        cells += [waits[len(waits) // 2], waits[-1]]
        lines.append(f"| {rule} | {' | '.join(f'{cell:,.4g}' for cell in cells)} |")
    lines += ["", "| job with GPUs | state | GPUs | waited h | ran h | GPU-hours |", "|---|---|---|---|---|---|"]
    for job in sorted((job for job in jobs if job.gpus), key=lambda job: (job.rule, job.wildcards)):
        figures = f"{job.gpus} | {job.waited:.2f} | {job.ran:.2f} | {job.ran * job.gpus:.1f}"
        lines.append(f"| {job.rule} {job.wildcards} | {job.state} | {figures} |")
    return "\n".join(lines) + "\n"


def _gpu_hours(jobs: Sequence[Job]) -> float:
    return sum(job.ran * job.gpus for job in jobs)


def ask(known: dict[str, tuple[str, str]]) -> list[Job]:
    """What Slurm's accounting has of these jobs; raises UserError where there is none."""
    jobs, ids = [], sorted(known, key=int)
    words = ["sacct", "--allocations", "--parsable2", "--noheader", "--duplicates", f"--format={FORMAT}"]
    for first in range(0, len(ids), ASKED_AT_ONCE):
        status, output, error = slurm.run([*words, f"--jobs={','.join(ids[first : first + ASKED_AT_ONCE])}"])
        if status:
            raise UserError(f"Slurm's accounting does not answer ({error}): this cluster may keep none")
        jobs += read_jobs(output, known)
    return jobs


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m cluster.efficiency", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--logs", type=Path, default=Path(".snakemake/log"), help="folder of Snakemake's own logs")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    known = submitted(sorted(arguments.logs.glob("*.log")))
    if not known:
        raise UserError(f"no log in {arguments.logs} tells of a job that was submitted to Slurm")
    jobs = ask(known)
    if not jobs:
        raise UserError(f"Slurm's accounting knows none of the {len(known)} jobs that {arguments.logs} tells of")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    text = page(jobs)
    arguments.output.write_text(text, encoding="utf-8")
    print(f"{text}\nWritten to {arguments.output}")


if __name__ == "__main__":
    run_command(main)
