"""One row per training of some reports: how long it took, accuracy before and after, and the gain.

    crosszero run-table results/demo/report/gsm8k results/demo/report/maze

Accuracies are the reports', in percent with 95 % intervals; the gain is paired on the same problems. Seconds are those
that Snakemake keeps of the jobs: a base model, a run's training and its sampling, as means over its seeds.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from analysis import timeline
from analysis.pages.table_texts import interval_text, markdown, percent, points
from contracts import seeds
from contracts.run_file import Run
from eval.statistics import Estimate
from recipes.runs import load_run
from system.command_line import argument_parser
from system.errors import UserError, run_command

# A column's name, and Snakemake's rules
BASE_MODEL = "base_model|warm_up"
JOBS = {"base model": BASE_MODEL, "training": "train", "sampling": "generate_samples"}


def _stored_estimate(row: pd.Series, column: str) -> Estimate:
    return Estimate(*(float(row[f"{column}{end}"]) for end in ("", "_low", "_high")))


def _mean_seconds(jobs: pd.DataFrame, rules: str, name: str) -> str:
    """Of all stages of a run, each the mean over its training seeds; a dash where Snakemake has kept none."""
    own = jobs[jobs["label"].str.fullmatch(f"({rules}) {re.escape(name)}( stage-\\d+)?")]
    return f"{(own['end'] - own['start']).groupby(own['label']).mean().sum():.0f}" if len(own) else "–"


def _table_row(run_id: str, run: Run, steps: pd.DataFrame, jobs: pd.DataFrame) -> dict[str, str]:
    benchmarks = run.evaluation["benchmarks"]
    column = "average" if len(benchmarks) > 1 else benchmarks[0]
    first, last = steps.iloc[steps["step"].argmin()], steps.iloc[steps["step"].argmax()]
    names = {BASE_MODEL: run.model}
    return {
        "run": run_id,
        "framework": f"{run.framework}, {run.algorithm}",
        **{f"{title} (s)": _mean_seconds(jobs, rules, names.get(rules, run.name)) for title, rules in JOBS.items()},
        "base model (%)": interval_text(_stored_estimate(first, column), percent),
        "last checkpoint (%)": f"{interval_text(_stored_estimate(last, column), percent)}, step {last['step']}",
        "gain in points": interval_text(_stored_estimate(last, f"{column}_difference"), points),
    }


def rows(report: Path, jobs: pd.DataFrame) -> list[dict[str, str]]:
    """The rows of one report's runs.

    Args:
        report: results/<scale>/report/<recipe>.
        jobs: as analysis.timeline gives them; without rows, no time is known.

    Raises:
        UserError: the folder is no report, or has a run without a run file.
    """
    file = report / "tables" / "accuracy.csv"
    if not file.is_file():
        raise UserError(
            f"{report} should be a report's folder, but it has no {file.relative_to(report)}: make the report first",
            code="not-a-report", path=str(report),
        )  # fmt: skip
    scale = report.resolve().parent.parent.name
    return [
        _table_row(str(run_id), load_run(seeds.run_of(str(run_id)), scale), steps, jobs)
        for run_id, steps in pd.read_csv(file).groupby("run", sort=False)
    ]


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT", help="results/<scale>/report/<recipe>")
    parser.add_argument(
        "--metadata", type=Path, default=timeline.METADATA, metavar="FOLDER", help="default: %(default)s"
    )
    arguments = parser.parse_args()
    jobs = timeline.read_jobs(arguments.metadata)
    print(markdown(pd.DataFrame([row for report in arguments.reports for row in rows(report, jobs)])), end="")


if __name__ == "__main__":
    run_command(main)
