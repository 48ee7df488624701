"""Where the time of each training went: sampling, reward, update and what lies between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.pages.figure_style import COLOURS, FAINT, WIDTH, legend
from analysis.pages.table_texts import Table
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults

NAME = "phases"
ROW, BORDER = 0.28, 1.1  # inches
# What a framework does in one go has one name: its first word is the larger part, and gives the colour.
KINDS = ("start-up", "sampling", "reward", "log-probabilities", "reference", "values", "advantages", "update",
         "weight transfer", "checkpoint", "evaluation", "rest", "end")  # fmt: skip


def seconds(run: RunResults) -> dict[str, float]:
    """By phase, the seconds of all steps of a run; empty where its log has none, as one of an earlier release."""
    total = Counter[str]()
    for phases in run.log["phases"].dropna() if "phases" in run.log else ():
        for phase in phases:
            total[phase["name"]] += phase["seconds"]
    return dict(total)


def kind(phase: str) -> str:
    """The entry of KINDS that a phase's name begins with."""
    return next(name for name in KINDS if phase.startswith(name))


def phases_table(runs: Sequence[RunResults]) -> Table:
    """One row per run and phase: seconds, share of the whole training, and seconds of a step."""
    rows = []
    for run in runs:
        times, steps = seconds(run), len(run.log)
        whole = sum(times.values())
        rows += [(run.name, phase, value, value / whole, value / steps) for phase, value in times.items()]
        rows.append((run.name, "whole training", whole, 1.0, whole / steps))
    data = pd.DataFrame(rows, columns=["run", "phase", "seconds", "share", "seconds_per_step"])
    texts = {
        "run": data["run"],
        "phase": data["phase"],
        "seconds": data["seconds"].map("{:,.1f}".format),
        "share (%)": (100 * data["share"]).map("{:.1f}".format),
        "seconds a step": data["seconds_per_step"].map("{:.2f}".format),
    }
    return Table(NAME, data, pd.DataFrame(texts))


def plot_phases(runs: Sequence[RunResults]) -> Figure:
    """A bar for each run, whose parts are the phases, in minutes."""
    figure, axes = plt.subplots(figsize=(WIDTH, ROW * len(runs) + BORDER))
    drawn: dict[str, str] = {}
    for row, run in enumerate(reversed(runs)):
        left = 0.0
        for phase, value in sorted(seconds(run).items(), key=lambda item: KINDS.index(kind(item[0]))):
            if value > 0:
                drawn[kind(phase)] = colour = (*COLOURS, FAINT)[KINDS.index(kind(phase))]
                axes.barh(row, value / 60, left=left, color=colour, height=0.7, linewidth=0)
                left += value / 60
    axes.set_yticks(range(len(runs)), [run.display_name for run in reversed(runs)])
    axes.set_xlabel("minutes")
    axes.grid(visible=False, axis="y")
    order = [name for name in KINDS if name in drawn]
    legend(figure, [Patch(facecolor=drawn[name]) for name in order], order)
    return figure


def content(report: ReportData) -> Content | None:
    """The figure and the table, where a run's log has phases."""
    runs = [run for run in report.trained if seconds(run)]
    return Content([phases_table(runs)], {NAME: plot_phases(runs)}) if runs else None


SECTION = Section(
    order=620,
    content=content,
    tables={
        NAME: (
            "Seconds of each phase over all steps of a training, by the framework's own timers. Start-up, rest and "
            "end are timed from outside, so that the phases add up to the time from the trainer's start to its end. "
            "What a framework does in one go has one name: some reward a completion while others are still sampled, "
            "and some compute log-probabilities, the reference's and values at once."
        )
    },
    figures={
        NAME: (
            "Where the time of each training went. Compare runs only if nothing else ran beside them. The colour of "
            "sampling includes the reward where the framework does both at once; the table names every phase."
        )
    },
    numbers={NAME: NAME},
    text="""\
{{ figure("phases") }}
{{ table("phases", "Where the time of each training went.", 2) }}
""",
)
