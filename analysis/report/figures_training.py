"""Figures from the training log: reward, response length, and rates over steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.report.figure_style import FAINT, INK, Look, legend, looks, panels, run_handle, running_mean, window
from analysis.results import Run

STEP = "training step"
MOST_MARKS = 300


def on_one_axis(log: pd.DataFrame) -> tuple[pd.Series, list[float]]:
    """Positions of the log's rows on one axis, and where a later stage begins.

    A stage that counts its steps from the start again is put after the stage before it.
    """
    positions, starts, last = log["step"].astype(float).copy(), [], 0.0
    for number, (_, rows) in enumerate(log.groupby("stage", sort=True)):
        shift = last if number and rows["step"].min() <= last else 0.0
        positions.loc[rows.index] = rows["step"] + shift
        if number:
            starts.append(last)
        last = float(positions.loc[rows.index].max())
    return positions, starts


def mark_stages(axes: Axes, starts: Sequence[float], colour: str) -> None:
    """A dotted line in the run's colour where a later stage begins."""
    for start in starts:
        axes.axvline(start, color=colour, linewidth=1, linestyle=":")


def _curve(axes: Axes, run: Run, column: str, look: Look, scale: float = 1.0, raw: bool = True) -> bool:
    """Each step as a faint point, and the running mean on top; returns whether the framework reported the column."""
    values = run.log[column].replace([np.inf, -np.inf], np.nan) * scale
    if values.isna().all():
        return False
    positions, starts = on_one_axis(run.log)
    many = len(values) > MOST_MARKS  # then an image inside the SVG, which would else grow to megabytes
    if raw:
        axes.plot(
            positions, values, ".", color=look.colour, alpha=0.38, markersize=4, markeredgewidth=0, rasterized=many
        )
    axes.plot(positions, running_mean(values, window(len(values))), color=look.colour, linestyle=look.dash)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    mark_stages(axes, starts, look.colour)
    return True


def not_reported(axes: Axes, why: str = "not reported") -> None:
    """Say in an empty panel why it is empty."""
    axes.tick_params(bottom=False, left=False, labelbottom=False, labelleft=False)
    axes.grid(False)
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color=FAINT, fontsize=9)


def training_legend(figure: Figure, runs: Sequence[Run], look: dict[str, Look]) -> None:
    """The runs, what is a single step and what a mean, and what the dotted lines are if there are any."""
    widths = sorted({window(len(run.log)) for run in runs})
    over = f"{widths[0]} to {widths[-1]}" if len(widths) > 1 else str(widths[0])
    entries: list[tuple[Artist, str]] = [(run_handle(look[run.name]), run.name) for run in runs]
    entries += [
        (Line2D([], [], linestyle="none", marker=".", markersize=5, alpha=0.45, color=INK, mew=0), "one step"),
        (Line2D([], [], color=INK, linewidth=1.7), f"mean over {over} steps"),
    ]
    if any(run.log["stage"].nunique() > 1 for run in runs):
        entries.append((Line2D([], [], color=INK, linewidth=1, linestyle=":"), "a run's next stage begins"))
    legend(figure, [handle for handle, _ in entries], [label for _, label in entries])


def _share(axes: Axes) -> None:
    axes.set_ylim(-3, 103)
    axes.set_yticks([0, 25, 50, 75, 100])


def reward(runs: Sequence[Run]) -> Figure:
    """Mean reward over steps, and the spread of rewards that gives the training its signal."""
    figure, (mean, spread) = panels(1, 2, 2.5)
    look = looks([run.name for run in runs])
    for axes, column, title, label in (
        (mean, "reward_mean", "Mean reward", "reward per completion"),
        (spread, "reward_std", "Spread of rewards", "standard deviation"),
    ):
        drawn = [_curve(axes, run, column, look[run.name]) for run in runs]
        if not any(drawn):
            not_reported(axes)
        axes.set(title=title, xlabel=STEP, ylabel=label)
    training_legend(figure, runs, look)
    return figure


def response_length(runs: Sequence[Run]) -> Figure:
    """Mean and longest response of each step, and the share that was cut off at the limit."""
    figure, grid = panels(1, 3, 2.5)
    look = looks([run.name for run in runs])
    columns = ("response_length_mean", "response_length_max", "truncated_rate")
    titles = ("Mean response", "Longest response", "Cut off at the limit")
    for axes, column, title in zip(grid, columns, titles, strict=True):
        share = column == "truncated_rate"
        drawn = [_curve(axes, run, column, look[run.name], 100 if share else 1) for run in runs]
        if not any(drawn):
            not_reported(axes)
        axes.set(title=title, xlabel=STEP, ylabel="share of responses (%)" if share else "length (tokens)")
        axes.set_ylim(0, max(10.0 if share else 1.0, 1.06 * axes.dataLim.ymax if any(drawn) else 0.0))
    training_legend(figure, runs, look)
    return figure


def rates(runs: Sequence[Run]) -> Figure:
    """Right, wrong and badly formatted completions over steps; together they are all completions."""
    figure, grid = panels(1, 3, 2.5, sharey=True)
    look = looks([run.name for run in runs])
    columns = ("accuracy", "wrong_answer_rate", "format_error_rate")
    for axes, column, title in zip(grid, columns, ("Right", "Wrong answer", "Format error"), strict=True):
        drawn = [_curve(axes, run, column, look[run.name], 100) for run in runs]
        if not any(drawn):
            not_reported(axes)
        axes.set(title=title, xlabel=STEP)
        _share(axes)
    grid[0].set_ylabel("share of completions (%)")
    training_legend(figure, runs, look)
    return figure
