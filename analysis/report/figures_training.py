"""Figures of the training log: reward, response length, and rates over steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.report.figure_style import (
    FAINT,
    INK,
    RunStyle,
    legend,
    panels,
    run_handle,
    run_styles,
    running_mean,
    window,
)
from analysis.results import RunResults

STEP = "training step"
MAX_VECTOR_POINTS = 300  # more points become an image inside the SVG, which would otherwise grow to megabytes


def on_one_axis(log: pd.DataFrame) -> tuple[pd.Series, list[float]]:
    """Positions of the rows of a log on one axis, and the positions where a later stage begins.

    A stage that counts its steps from the start again is placed after the stage before it.
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
    """Draw a dotted line where a later stage begins.

    Args:
        axes: to draw in.
        starts: positions of the lines.
        colour: of the run.
    """
    for start in starts:
        axes.axvline(start, color=colour, linewidth=1, linestyle=":")


def _curve(axes: Axes, run: RunResults, column: str, style: RunStyle, scale: float = 1.0) -> bool:
    """Draw each step as a faint point and the running mean on top. Returns whether the framework reports the column."""
    values = run.log[column].replace([np.inf, -np.inf], np.nan) * scale
    if values.isna().all():
        return False
    positions, starts = on_one_axis(run.log)
    many = len(values) > MAX_VECTOR_POINTS
    axes.plot(positions, values, ".", color=style.colour, alpha=0.38, markersize=4, markeredgewidth=0, rasterized=many)
    axes.plot(positions, running_mean(values, window(len(values))), color=style.colour, linestyle=style.dash)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    mark_stages(axes, starts, style.colour)
    return True


def not_reported(axes: Axes, why: str = "not reported") -> None:
    """Write into an empty panel why it is empty."""
    axes.tick_params(bottom=False, left=False, labelbottom=False, labelleft=False)
    axes.grid(False)
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color=FAINT, fontsize=9)


def training_legend(figure: Figure, runs: Sequence[RunResults], styles: dict[str, RunStyle]) -> None:
    """Add the legend: the runs, single steps and means, and dotted lines if there are any.

    Args:
        figure: to add it to.
        runs: those drawn.
        styles: their styles, by name.
    """
    widths = sorted({window(len(run.log)) for run in runs})
    over = f"{widths[0]} to {widths[-1]}" if len(widths) > 1 else str(widths[0])
    entries: list[tuple[Artist, str]] = [(run_handle(styles[run.name]), run.name) for run in runs]
    entries += [
        (Line2D([], [], linestyle="none", marker=".", markersize=5, alpha=0.45, color=INK, mew=0), "one step"),
        (Line2D([], [], color=INK, linewidth=1.7), f"mean over {over} steps"),
    ]
    if any(run.log["stage"].nunique() > 1 for run in runs):
        entries.append((Line2D([], [], color=INK, linewidth=1, linestyle=":"), "next stage of a run"))
    legend(figure, [handle for handle, _ in entries], [label for _, label in entries])


def _share(axes: Axes) -> None:
    axes.set_ylim(-3, 103)
    axes.set_yticks([0, 25, 50, 75, 100])


def reward(runs: Sequence[RunResults]) -> Figure:
    """Mean and standard deviation of the reward over steps."""
    figure, (mean, spread) = panels(1, 2, 2.5)
    styles = run_styles([run.name for run in runs])
    for axes, column, title, label in (
        (mean, "reward_mean", "Mean reward", "reward per completion"),
        (spread, "reward_std", "Spread of rewards", "standard deviation"),
    ):
        drawn = [_curve(axes, run, column, styles[run.name]) for run in runs]
        if not any(drawn):
            not_reported(axes)
        axes.set(title=title, xlabel=STEP, ylabel=label)
    training_legend(figure, runs, styles)
    return figure


def response_length(runs: Sequence[RunResults]) -> Figure:
    """Mean and longest response of each step, and the share truncated."""
    figure, grid = panels(1, 3, 2.5)
    styles = run_styles([run.name for run in runs])
    columns = ("response_length_mean", "response_length_max", "truncated_rate")
    titles = ("Mean response", "Longest response", "Truncated")
    for axes, column, title in zip(grid, columns, titles, strict=True):
        share = column == "truncated_rate"
        drawn = [_curve(axes, run, column, styles[run.name], 100 if share else 1) for run in runs]
        if not any(drawn):
            not_reported(axes)
        axes.set(title=title, xlabel=STEP, ylabel="share of responses (%)" if share else "length (tokens)")
        axes.set_ylim(0, max(10.0 if share else 1.0, 1.06 * axes.dataLim.ymax if any(drawn) else 0.0))
    training_legend(figure, runs, styles)
    return figure


def rates(runs: Sequence[RunResults]) -> Figure:
    """Shares of correct, wrong and badly formatted completions over steps, which add up to all completions."""
    figure, grid = panels(1, 3, 2.5, sharey=True)
    styles = run_styles([run.name for run in runs])
    columns = ("accuracy", "wrong_answer_rate", "format_error_rate")
    for axes, column, title in zip(grid, columns, ("Correct", "Wrong answer", "Format error"), strict=True):
        drawn = [_curve(axes, run, column, styles[run.name], 100) for run in runs]
        if not any(drawn):
            not_reported(axes)
        axes.set(title=title, xlabel=STEP)
        _share(axes)
    grid[0].set_ylabel("share of completions (%)")
    training_legend(figure, runs, styles)
    return figure
