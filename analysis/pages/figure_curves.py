"""Figures of curves: a panel for each quantity, and in it a curve for each run, over training steps or checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from scipy import stats

from analysis.pages.figure_style import (
    INK,
    MARKER_SIZE,
    RunStyle,
    legend,
    not_reported,
    panels,
    run_handle,
    run_legend,
    run_styles,
    running_mean,
    window,
)
from analysis.results import RunResults
from analysis.statistics.training_seeds import Recipe

STEP, CHECKPOINT = "training step", "checkpoint (training step)"
SHARES = (-3.0, 103.0)  # the y range of percentages that add up to 100
ONE_SEED: dict[str, Any] = {"linewidth": 0.9, "alpha": 0.5}  # how the line of each of several seeds is drawn
BAND = 0.22  # opacity of the interval of a mean
MAX_VECTOR_POINTS = 300  # more points become an image inside the SVG, which would otherwise grow to megabytes


class Panel(NamedTuple):
    """One quantity. The y range starts at zero and reaches at least `limits`, or is `limits`, or follows the values."""

    title: str
    ylabel: str
    values: Callable[[RunResults], pd.Series]  # by position on the x axis; a null is a gap
    limits: float | tuple[float, float] | None = None


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


def in_training(axes: Axes, values: pd.Series, style: RunStyle, starts: Sequence[float] = ()) -> None:
    """Draw each step as a faint point and the running mean on top.

    Args:
        axes: to draw in.
        values: by position.
        style: of the run.
        starts: positions of dotted lines, where a later stage begins.
    """
    many, mean = len(values) > MAX_VECTOR_POINTS, running_mean(values, window(len(values)))
    axes.plot(values, ".", color=style.colour, alpha=0.38, markersize=4, markeredgewidth=0, rasterized=many)
    axes.plot(
        mean, color=style.colour, linestyle=style.dash, marker=style.marker, markevery=max(1, len(mean) // 6),
        markersize=4,
    )  # fmt: skip
    for start in starts:
        axes.axvline(start, color=style.colour, linewidth=1, linestyle=":")


def over_checkpoints(axes: Axes, values: pd.Series, style: RunStyle) -> None:
    """Draw a marked line.

    Args:
        axes: to draw in.
        values: by step.
        style: of the run.
    """
    axes.plot(values, color=style.colour, linestyle=style.dash, marker=style.marker, markersize=MARKER_SIZE)


def band(axes: Axes, steps: Sequence[float], low: Sequence[float], high: Sequence[float], style: RunStyle) -> None:
    """Draw the interval of a mean. The axes keep following the lines, because an interval over two seeds is very wide.

    Args:
        axes: to draw in.
        steps: positions on the x axis.
        low: of the interval at each.
        high: likewise.
        style: of the recipe.
    """
    lines = axes.dataLim.frozen()
    axes.fill_between(steps, low, high, color=style.colour, alpha=BAND, linewidth=0)
    axes.dataLim.set(lines)
    axes.autoscale_view()


def _seeds_and_mean(axes: Axes, values: Sequence[pd.Series], style: RunStyle) -> None:
    """A thin line for each seed, and their mean with its 95 % interval (Student's t) where all seeds have values."""
    for own in values:
        axes.plot(own, color=style.colour, linestyle=style.dash, **ONE_SEED)
    whole = pd.concat([own[~own.index.duplicated()] for own in values], axis=1).sort_index().dropna()
    mean = whole.mean(axis=1)
    half = stats.t.ppf(0.975, len(values) - 1) * whole.std(axis=1, ddof=1) / np.sqrt(len(values))
    axes.plot(
        mean, color=style.colour, linestyle=style.dash, marker=style.marker, markevery=max(1, len(mean) // 6),
        markersize=MARKER_SIZE, linewidth=2.0,
    )  # fmt: skip
    band(axes, list(mean.index), list(mean - half), list(mean + half), style)


def recipe_curve(
    axes: Axes, values: Sequence[pd.Series], style: RunStyle, *, training: bool, starts: Sequence[float] = ()
) -> None:
    """Draw one recipe: one run as it is, several seeds as a line each and their mean with its interval.

    Args:
        axes: to draw in.
        values: of each seed, by step.
        style: of the recipe.
        training: over training steps, where running means are drawn, else over checkpoints.
        starts: positions of dotted lines, where a later stage begins.
    """
    if len(values) > 1:
        _seeds_and_mean(axes, [running_mean(own, window(len(own))) for own in values] if training else values, style)
        for start in starts:
            axes.axvline(start, color=style.colour, linewidth=1, linestyle=":")
    elif training:
        in_training(axes, values[0], style, starts)
    else:
        over_checkpoints(axes, values[0], style)


def curves(
    recipes: Sequence[Recipe],
    curve_panels: Sequence[Panel],
    *,
    training: bool,
    columns: int | None = None,
    sharey: bool = False,
) -> Figure:
    """A figure with the curves of each recipe in each panel. A panel without any value says so.

    Args:
        recipes: those to draw.
        curve_panels: the panels, row by row.
        training: over training steps, else over checkpoints.
        columns: of the grid; by default all panels are in one row.
        sharey: whether all panels have the same y range.
    """
    xlabel, styles = STEP if training else CHECKPOINT, run_styles([recipe.display_name for recipe in recipes])
    figure, grid = panels(len(curve_panels), columns or len(curve_panels), 2.4, xlabel=xlabel, sharey=sharey)
    for axes, panel in zip(grid, curve_panels, strict=True):
        known = False
        for recipe in recipes:
            values = [panel.values(run).replace([np.inf, -np.inf], np.nan) for run in recipe.runs]
            known |= any(bool(own.notna().any()) for own in values)
            starts = on_one_axis(recipe.runs[0].log)[1] if training else []
            recipe_curve(axes, values, styles[recipe.display_name], training=training, starts=starts)
        axes.set(title=panel.title, ylabel=panel.ylabel)
        if isinstance(panel.limits, tuple):
            axes.set_ylim(panel.limits)
        elif panel.limits is not None:
            top = max(panel.limits, 1.06 * axes.dataLim.ymax) if known else panel.limits
            axes.set_ylim(-0.03 * top, top)
        if not known:
            not_reported(axes)
        if sharey:
            axes.label_outer()
    if training:
        training_legend(figure, recipes, styles)
    else:
        run_legend(figure, styles, seeds_legend(recipes))
    return figure


def checkpoint_panels(count: int, height: float, ylabel: str) -> tuple[Figure, list[Axes]]:
    """`count` panels, at most three in a row, with labels on the outer ones only."""
    columns = 2 if count == 4 else min(count, 3)
    figure, grid = panels(count, columns, height, xlabel=CHECKPOINT, sharex=False, sharey=True)
    for axes in grid[::columns]:
        axes.set_ylabel(ylabel)
    return figure, grid


def seeds_legend(recipes: Sequence[Recipe]) -> list[tuple[Artist, str]]:
    """What the lines of several seeds mean; nothing where each recipe has one."""
    if not any(recipe.has_several_seeds for recipe in recipes):
        return []
    return [
        (Line2D([], [], color=INK, **ONE_SEED), "one seed"),
        (Patch(color=INK, alpha=BAND, linewidth=0), "95 % interval of the mean"),
    ]


def training_legend(figure: Figure, recipes: Sequence[Recipe], styles: dict[str, RunStyle]) -> None:
    """Add the legend: the recipes, single steps and means, and dotted lines if there are any.

    Args:
        figure: to add it to.
        recipes: those drawn.
        styles: their styles, by name.
    """
    runs = [run for recipe in recipes for run in recipe.runs]
    widths = sorted({window(len(run.log)) for run in runs})
    over = f"{widths[0]} to {widths[-1]}" if len(widths) > 1 else str(widths[0])
    entries: list[tuple[Artist, str]] = [(run_handle(style), name) for name, style in styles.items()]
    entries += seeds_legend(recipes)
    if not all(recipe.has_several_seeds for recipe in recipes):
        dot = Line2D([], [], linestyle="none", marker=".", markersize=5, alpha=0.45, color=INK, mew=0)
        entries.append((dot, "one step"))
    entries += [
        (Line2D([], [], color=INK, linewidth=1.7), f"mean over {over} steps"),
    ]
    if any(run.log["stage"].nunique() > 1 for run in runs):
        entries.append((Line2D([], [], color=INK, linewidth=1, linestyle=":"), "next stage of a run"))
    legend(figure, [handle for handle, _ in entries], [label for _, label in entries])
