"""Where the time of each training went: sampling, reward, update and what lies between them."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.measures import phases
from analysis.pages.figure_style import WIDTH, legend
from analysis.pages.table_texts import Table
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults

NAME = "phases"
ROW, BORDER = 0.28, 1.1  # inches


def _seconds(run: RunResults) -> dict[str, float]:
    return phases.seconds(run.log)


def phases_table(runs: Sequence[RunResults]) -> Table:
    """One row per run and phase: seconds, share of the whole training, and seconds of a step."""
    rows = []
    for run in runs:
        times, steps = _seconds(run), len(run.log)
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
        for phase, value in phases.in_order(_seconds(run)):
            if value > 0:
                drawn[phases.kind(phase)] = colour = phases.colour(phase)
                axes.barh(row, value / 60, left=left, color=colour, height=0.7, linewidth=0)
                left += value / 60
    axes.set_yticks(range(len(runs)), [run.display_name for run in reversed(runs)])
    axes.set_xlabel("minutes")
    axes.grid(visible=False, axis="y")
    order = [name for name in phases.KINDS if name in drawn]
    legend(figure, [Patch(facecolor=drawn[name]) for name in order], order)
    return figure


def content(report: ReportData) -> Content | None:
    """The figure and the table, where a run's log has phases."""
    runs = [run for run in report.trained if _seconds(run)]
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
