"""GPU-hours, waiting time and wall time of the jobs, from Slurm's accounting, as a Markdown page.

snakemake efficiency --profile slurm
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median_high

import pandas as pd

from cluster import slurm
from system import durable, markdown
from system.command_line import argument_parser
from system.errors import UserError, run_command

# The executor's log line of a submission; the path of the job's log contains the rule and its wildcards.
SUBMITTED = re.compile(
    r"has been submitted with SLURM jobid (\d+) \(log: .*/(?:rule|group)_([^/]+)/(?:(.*)/)?\d+\.log\)"
)
FORMAT = "JobIDRaw,State,Submit,Start,End,ElapsedRaw,AllocTRES"
JOBS_PER_QUERY = 500


def submitted_jobs(logs: Sequence[Path]) -> dict[str, tuple[str, str]]:
    """Rule and wildcards of every Slurm job in Snakemake's logs, by its id."""
    jobs = {}
    for log in logs:
        for job, rule, wildcards in SUBMITTED.findall(log.read_text(encoding="utf-8", errors="replace")):
            jobs[job] = (rule, wildcards)
    return jobs


def read_jobs(output: str, known: dict[str, tuple[str, str]]) -> pd.DataFrame:
    """Parse `sacct --allocations --parsable2 --noheader --duplicates` in FORMAT; a requeued job has several lines.

    Columns: rule, wildcards, state, waited and ran (hours), gpus, cpus.
    """
    lines = [line.split("|") for line in output.split("\n") if line.strip()]
    jobs = pd.DataFrame([line for line in lines if line[0] in known], columns=FORMAT.split(","), dtype=str)
    submit, start = (pd.to_datetime(jobs[name], errors="coerce") for name in ("Submit", "Start"))  # may be "Unknown"
    counts = {
        name: jobs["AllocTRES"].str.extract(rf"(?:^|,){name}=(\d+)", expand=False) for name in ("gres/gpu", "cpu")
    }
    return pd.DataFrame(
        {
            "rule": [known[job][0] for job in jobs["JobIDRaw"]],
            "wildcards": [known[job][1] for job in jobs["JobIDRaw"]],
            "state": jobs["State"].str.split().str[0],
            "waited": (start - submit).dt.total_seconds().fillna(0.0) / 3600,
            "ran": pd.to_numeric(jobs["ElapsedRaw"]).fillna(0) / 3600,
            "gpus": counts["gres/gpu"].fillna("0").astype(int),
            "cpus": counts["cpu"].fillna("0").astype(int),
        }
    )


def usage_page(jobs: pd.DataFrame) -> str:
    """The Markdown page: one table by rule, one of all jobs with GPUs."""
    failed = ~jobs["state"].isin(["COMPLETED", "RUNNING", "PENDING"])
    used = jobs["ran"] * jobs["gpus"]
    all_jobs = jobs.assign(failed=failed, used=used, lost=used.where(failed, 0.0), cpu_hours=jobs["ran"] * jobs["cpus"])
    rules = all_jobs.groupby("rule").agg(
        **{
            "jobs": ("state", "size"),
            "not completed": ("failed", "sum"),
            "GPU-hours": ("used", "sum"),
            "lost GPU-hours": ("lost", "sum"),
            "CPU-hours": ("cpu_hours", "sum"),
            "median wait, h": ("waited", median_high),
            "longest wait, h": ("waited", "max"),
        }
    )
    by_rule = [[row[0], *(f"{cell:,.4g}" for cell in row[1:])] for row in rules.itertuples()]
    with_gpus = [
        [f"{job.rule} {job.wildcards}", job.state, job.gpus, f"{job.waited:.2f}", f"{job.ran:.2f}", f"{job.used:.1f}"]
        for job in all_jobs[jobs["gpus"] > 0].sort_values(["rule", "wildcards"], kind="stable").itertuples()
    ]
    return (
        f"# Resources used by {len(jobs)} jobs\n\n{markdown.table(['rule', *rules.columns], by_rule)}\n"
        + markdown.table(["job with GPUs", "state", "GPUs", "waited h", "ran h", "GPU-hours"], with_gpus)
    )


def accounted_jobs(known: dict[str, tuple[str, str]]) -> pd.DataFrame:
    """The jobs in Slurm's accounting; raises UserError if there is no accounting."""
    parts, ids = [], sorted(known, key=int)
    command = ["sacct", "--allocations", "--parsable2", "--noheader", "--duplicates", f"--format={FORMAT}"]
    for first in range(0, len(ids), JOBS_PER_QUERY):
        status, output, error = slurm.run([*command, f"--jobs={','.join(ids[first : first + JOBS_PER_QUERY])}"])
        if status:
            raise UserError(
                f"sacct failed ({slurm.failure_reason(status, error)}): this cluster may keep no accounting",
                code="slurm-command-failed",
                command="sacct",
            )
        parts.append(read_jobs(output, known))
    return pd.concat(parts, ignore_index=True)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--logs", type=Path, default=Path(".snakemake/log"), help="folder of Snakemake's logs")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    known = submitted_jobs(sorted(arguments.logs.glob("*.log")))
    if not known:
        raise UserError(
            f"no log in {arguments.logs} contains a job submitted to Slurm: run snakemake --profile slurm first",
            code="missing-jobs",
        )
    jobs = accounted_jobs(known)
    if jobs.empty:
        raise UserError(
            f"Slurm's accounting has none of the {len(known)} jobs in {arguments.logs}: it may have expired",
            code="missing-accounting",
        )
    text = usage_page(jobs)
    durable.write_text(arguments.output, text)
    print(f"{text}\nWritten to {arguments.output}")


if __name__ == "__main__":
    run_command(main)
