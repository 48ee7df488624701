"""Figures of graded samples and scores over checkpoints: accuracy, verdicts, keyword patterns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.measures import reasoning_patterns
from analysis.pages.figure_curves import CHECKPOINT, ONE_SEED, SHARES, Panel, band, curves, seeds_legend
from analysis.pages.figure_style import MARKER_SIZE, RunStyle, broken, legend, panels, run_legend, run_styles
from analysis.reference import in_order
from analysis.results import RunResults
from analysis.statistics import training_seeds
from analysis.statistics.checkpoint_difference import accuracy, mean_of
from analysis.statistics.training_seeds import Recipe, by_recipe
from contracts.tables import VERDICTS
from eval.statistics import Estimate

MAX_SHIFT = 0.06  # of the axis, over all runs of a panel
# In the order of the stack. Light and dark alternate, so that neighbours differ in grey.
VERDICT_COLOURS = {
    "correct": "#0072b2", "wrong": "#f0c9a8", "no_answer": "#b5651d", "format_error": "#e6e2d3", "truncated": "#5b5b5b",
    "ungradable": "#ffffff",
}  # fmt: skip
VERDICT_NAMES = {
    "correct": "correct", "wrong": "wrong", "no_answer": "no answer", "format_error": "format error",
    "truncated": "truncated", "ungradable": "could not be graded",
}  # fmt: skip


def _points(axes: Axes, steps: Sequence[int], values: Sequence[Estimate], style: RunStyle, shift: float) -> None:
    places = [step + shift for step in steps]
    middle = [100 * value.value for value in values]
    reach = [[100 * (v.value - v.low) for v in values], [100 * (v.high - v.value) for v in values]]
    axes.errorbar(
        places, middle, yerr=reach, color=style.colour, linestyle=style.dash, marker=style.marker,
        markersize=MARKER_SIZE, markeredgecolor="white", markeredgewidth=0.6, elinewidth=1.1, capsize=2.2, capthick=1.1,
        linewidth=1.5,
    )  # fmt: skip


def _seeds(axes: Axes, recipe: Recipe, benchmarks: Sequence[str], style: RunStyle, shift: float) -> None:
    """A thin line for each seed, and their mean with the interval for new seeds and new problems."""
    for run in recipe.runs:
        own = [100 * mean_of([accuracy(run, step, name) for name in benchmarks]).value for step in run.steps]
        axes.plot([step + shift for step in run.steps], own, color=style.colour, linestyle=style.dash, **ONE_SEED)
    values = [training_seeds.accuracy(recipe, step, benchmarks) for step in recipe.steps]
    places = [step + shift for step in recipe.steps]
    axes.plot(
        places, [100 * v.value for v in values], color=style.colour, linestyle=style.dash, marker=style.marker,
        markersize=MARKER_SIZE, markeredgecolor="white", markeredgewidth=0.6, linewidth=2.0,
    )  # fmt: skip
    band(axes, places, [100 * v.low for v in values], [100 * v.high for v in values], style)


def _shifts(recipes: Sequence[Recipe]) -> list[float]:
    """Small horizontal shifts, so that the intervals of several recipes in a panel do not hide each other."""
    reach = max(run.last for recipe in recipes for run in recipe.runs) or 1
    apart = reach * min(0.012, MAX_SHIFT / len(recipes))
    return [apart * (i - (len(recipes) - 1) / 2) for i in range(len(recipes))]


def _grid(count: int, height: float, ylabel: str) -> tuple[Figure, list[Axes]]:
    """`count` panels, at most three in a row, with labels on the outer ones only."""
    columns = 2 if count == 4 else min(count, 3)
    figure, grid = panels(count, columns, height, xlabel=CHECKPOINT, sharex=False, sharey=True)
    for axes in grid[::columns]:
        axes.set_ylabel(ylabel)
    return figure, grid


def _average_of(benchmarks: Sequence[str], everything: Sequence[str]) -> str:
    """A short title: the common prefix of the names, if no other benchmark has it."""
    alike = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*benchmarks, strict=False))
    start = "".join(letters[0] for letters in alike)
    if len(start) > 2 and all(name in benchmarks for name in everything if name.startswith(start)):
        return f"average of {start}*"
    return f"average of {benchmarks[0]} {'and' if len(benchmarks) == 2 else '…'} {benchmarks[-1]}"


def _panels_of(runs: Sequence[RunResults]) -> list[tuple[str, list[RunResults], tuple[str, ...]]]:
    """Title, runs and benchmarks of each panel: every benchmark, and the average of each set of benchmarks.

    Averages of different benchmarks cannot be compared, so they are in different panels.
    """
    sets: dict[tuple[str, ...], list[RunResults]] = {}
    for run in runs:
        sets.setdefault(tuple(run.benchmarks), []).append(run)
    everything = in_order({name for names in sets for name in names})
    found: list[tuple[str, list[RunResults], tuple[str, ...]]] = []
    drawn: set[str] = set()
    for benchmarks in sorted(sets, key=lambda names: (-len(names), everything.index(names[0]))):
        for name in benchmarks:
            if name not in drawn:
                found.append((name, [run for run in runs if name in run.benchmarks], (name,)))
                drawn.add(name)
        if len(benchmarks) > 1:
            title = "average" if len(sets) == 1 else _average_of(benchmarks, everything)
            found.append((title, sets[benchmarks], benchmarks))
    return found


def heldout_accuracy(runs: Sequence[RunResults]) -> Figure:
    """Held-out accuracy of each checkpoint with its 95 % interval: a panel per benchmark, and averages."""
    recipes, shown = by_recipe(runs), _panels_of(runs)
    styles = run_styles([recipe.display_name for recipe in recipes])
    figure, grid = _grid(len(shown), 2.2, "correct (%)")
    for axes, (title, inside, benchmarks) in zip(grid, shown, strict=True):
        names = {run.name for run in inside}
        here = [recipe for recipe in recipes if recipe.runs[0].name in names]
        for recipe, shift in zip(here, _shifts(here), strict=True):
            style, run = styles[recipe.display_name], recipe.runs[0]
            if recipe.has_several_seeds:
                _seeds(axes, recipe, benchmarks, style, shift)
            else:
                values = [mean_of([accuracy(run, step, name) for name in benchmarks]) for step in run.steps]
                _points(axes, run.steps, values, style, shift)
        axes.set_title(title)
        if not any(run.trained for run in inside):
            axes.set(xlim=(-1, 1), xticks=[0], xticklabels=[inside[0].label(inside[0].last)])
    # From zero, so that heights are comparable, to the tallest interval, so that small scores are readable.
    top = min(100.0, max(axes.dataLim.ymax for axes in grid) * 1.08)
    grid[0].set_ylim(-0.03 * top, max(top, 10.0) + 0.03 * top)
    run_legend(figure, styles, seeds_legend(recipes))
    return figure


def outcomes(runs: Sequence[RunResults]) -> Figure:
    """Verdicts on the completions of each checkpoint over all benchmarks, as shares."""
    figure, grid = _grid(len(runs), 2.5, "share of completions (%)")
    used = [v for v in VERDICT_COLOURS if any(run.scores[f"n_{v}"].sum() for run in runs)]
    for axes, run in zip(grid, runs, strict=True):
        counts = run.scores.groupby("step")[[f"n_{v}" for v in VERDICTS]].sum().sort_index()
        shares = 100 * counts.div(counts.sum(axis=1), axis=0)
        drawn = shares[[f"n_{v}" for v in used]]
        drawn.plot.bar(
            stacked=True, ax=axes, width=0.74, color=[VERDICT_COLOURS[v] for v in used], edgecolor="#6f6f6f",
            linewidth=0.5, legend=False, xlabel=axes.get_xlabel(),
        )  # fmt: skip
        labels = [str(step) if run.trained else run.label(step) for step in shares.index]
        axes.set_xticks(range(len(shares)), labels, rotation=90 if len(shares) > 10 else 0)
        axes.set_xlim(-0.6, max(len(shares), 3) - 0.4)  # so that a single bar has the same width as others
        axes.set_title(broken(run.display_name), fontsize=8.5)
        axes.set_ylim(0, 100)
        axes.grid(False)
    handles = [Patch(facecolor=VERDICT_COLOURS[v], edgecolor="#6f6f6f", linewidth=0.5) for v in used]
    legend(figure, handles, [VERDICT_NAMES[v] for v in used])
    return figure


def _of_pattern(counts: pd.DataFrame, name: str, column: str, scale: int) -> Callable[[RunResults], pd.Series]:
    chosen = counts[(counts["benchmark"] == reasoning_patterns.ALL) & (counts["pattern"] == name)].sort_values("step")
    return lambda run: scale * chosen[chosen["run"] == run.name].set_index("step")[column]


def pattern_curves(
    runs: Sequence[RunResults], counts: pd.DataFrame, lists: Sequence[reasoning_patterns.PatternList]
) -> Figure:
    """Matches per completion and share of completions with a match, per keyword list, over all benchmarks.

    Args:
        runs: those to draw.
        counts: what patterns.table counted, of all runs.
        lists: one row of panels each.
    """
    shown = []
    for item in lists:
        title = item.title[0].upper() + item.title[1:]
        many, share = (_of_pattern(counts, item.name, *one) for one in (("per_completion", 1), ("share", 100)))
        shown.append(Panel(f"{title}: matches", "matches per completion", many, 0.1))
        shown.append(Panel(f"{title}: completions", "share of completions (%)", share, SHARES))
    return curves(runs, shown, training=False, columns=2)


def right_reasons(runs: Sequence[RunResults], counts: pd.DataFrame) -> Figure:
    """Right answers with right and with wrong reasoning, and wrong answers with right reasoning, over checkpoints.

    Args:
        runs: those to draw.
        counts: what reasoning.count found, of all runs; the mean over benchmarks is drawn.
    """

    def mean(column: str) -> Callable[[RunResults], pd.Series]:
        return lambda run: 100 * counts[counts["run"] == run.name].groupby("step")[column].mean()

    shown = [
        Panel(title, "share of completions (%)", mean(f"{name}_share"), SHARES)
        for name, title in (
            ("right_right", "Right answer,\nright reasoning"),
            ("right_wrong", "Right answer,\nwrong reasoning"),
            ("wrong_right", "Wrong answer,\nright reasoning"),
        )
    ]
    return curves(runs, shown, training=False)
