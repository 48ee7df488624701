"""What trainings cost besides their steps, per framework: start-up, checkpoints and what comes after the last step.

    crosszero study training_time      # in the folder in which Snakemake ran

A training's seconds are those that Snakemake keeps of its job. Those of its steps are the number of steps times the
mean time from the end of one step to the end of the next, writing of checkpoints included. Trainings that shared the
cores count in full, so measure with one after the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from analysis import timeline
from analysis.pages.table_texts import markdown
from contracts import tables
from recipes.runs import load_run
from system.command_line import argument_parser
from system.errors import UserError, run_command


class Training(NamedTuple):
    """One stage of one training: seconds of its whole job, and those of its steps."""

    framework: str
    steps: int
    whole: float
    in_steps: float


def trainings(jobs: pd.DataFrame, folder: Path, scale: str) -> list[Training]:
    """The trainings whose jobs are in a table of `timeline.jobs`, in the order of their starts.

    Args:
        folder: the one in which Snakemake ran; the jobs' outputs are relative to it.
    """
    measured = []
    own = jobs.loc[jobs["rule"] == "train", ["output", "start", "end"]]
    for output, start, end in own.itertuples(index=False, name=None):
        log = folder / Path(output).with_name("training_log.parquet")
        if not log.is_file():  # removed since
            continue
        rows = tables.read(log, tables.TRAINING_LOG, ["run", "step", "wall_time"]).to_pandas()
        times = rows["wall_time"].dropna()
        if len(times) < 2:
            continue
        run = load_run(str(rows["run"][0]).rpartition("/seed-")[0], scale)
        in_steps = float(times.iloc[-1] - times.iloc[0]) / (len(times) - 1) * len(times)
        measured.append(Training(run.framework, len(times), end - start, in_steps))
    return measured


def summary(measured: list[Training]) -> pd.DataFrame:
    """One row per framework: trainings, seconds of a step, of a training and of what are no steps, and the ratio."""
    frame = pd.DataFrame(measured)
    rows = [
        {
            "framework": framework,
            "trainings": len(own),
            "seconds of a step": f"{own['in_steps'].sum() / own['steps'].sum():.1f}",
            "of a training": f"{own['whole'].mean():.0f}",
            "besides its steps": f"{(own['whole'] - own['in_steps']).mean():.0f}",
            "whole / steps": f"{own['whole'].sum() / own['in_steps'].sum():.2f}",
        }
        for framework, own in frame.groupby("framework")
    ]
    return pd.DataFrame(rows)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--metadata", type=Path, default=timeline.METADATA, metavar="FOLDER", help="default: %(default)s"
    )
    parser.add_argument("--scale", choices=("demo", "full"), default="demo", help="default: %(default)s")
    arguments = parser.parse_args()
    measured = trainings(timeline.read_jobs(arguments.metadata), Path(), arguments.scale)
    if not measured:
        raise UserError(
            f"{arguments.metadata} should name trainings of at least two steps, but has none: train a run first",
            code="no-trainings",
        )
    print(markdown(summary(measured)))


if __name__ == "__main__":
    run_command(main)
