"""Held-out accuracy of every checkpoint: a figure, and a table for each run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.pages.figure_curves import ONE_SEED, band, checkpoint_panels, seeds_legend
from analysis.pages.figure_style import MARKER_SIZE, RunStyle, run_legend, run_styles
from analysis.pages.table_texts import Table, interval_columns, interval_text, percent, points
from analysis.reference import in_order
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults
from analysis.statistics import training_seeds
from analysis.statistics.accuracy_rows import AVERAGE, BASE_MARKS, CheckpointRow
from analysis.statistics.checkpoint_difference import accuracy, mean_of
from analysis.statistics.training_seeds import Recipe
from eval.statistics import Estimate

MAX_SHIFT = 0.06  # of the axis, over all runs of a panel


def _plot_points(axes: Axes, steps: Sequence[int], values: Sequence[Estimate], style: RunStyle, shift: float) -> None:
    places = [step + shift for step in steps]
    middle = [100 * value.value for value in values]
    reach = [[100 * (v.value - v.low) for v in values], [100 * (v.high - v.value) for v in values]]
    axes.errorbar(
        places, middle, yerr=reach, color=style.colour, linestyle=style.dash, marker=style.marker,
        markersize=MARKER_SIZE, markeredgecolor="white", markeredgewidth=0.6, elinewidth=1.1, capsize=2.2, capthick=1.1,
        linewidth=1.5,
    )  # fmt: skip


def _plot_seeds(axes: Axes, recipe: Recipe, benchmarks: Sequence[str], style: RunStyle, shift: float) -> None:
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
    panels: list[tuple[str, list[RunResults], tuple[str, ...]]] = []
    drawn: set[str] = set()
    for benchmarks in sorted(sets, key=lambda names: (-len(names), everything.index(names[0]))):
        for name in benchmarks:
            if name not in drawn:
                panels.append((name, [run for run in runs if name in run.benchmarks], (name,)))
                drawn.add(name)
        if len(benchmarks) > 1:
            title = "average" if len(sets) == 1 else _average_of(benchmarks, everything)
            panels.append((title, sets[benchmarks], benchmarks))
    return panels


def plot_heldout_accuracy(recipes: Sequence[Recipe]) -> Figure:
    """Held-out accuracy of each checkpoint with its 95 % interval: a panel per benchmark, and averages."""
    panels = _panels_of([run for recipe in recipes for run in recipe.runs])
    styles = run_styles([recipe.display_name for recipe in recipes])
    figure, grid = checkpoint_panels(len(panels), 2.2, "correct (%)")
    for axes, (title, inside, benchmarks) in zip(grid, panels, strict=True):
        names = {run.name for run in inside}
        here = [recipe for recipe in recipes if recipe.runs[0].name in names]
        for recipe, shift in zip(here, _shifts(here), strict=True):
            style, run = styles[recipe.display_name], recipe.runs[0]
            if recipe.has_several_seeds:
                _plot_seeds(axes, recipe, benchmarks, style, shift)
            else:
                values = [mean_of([accuracy(run, step, name) for name in benchmarks]) for step in run.steps]
                _plot_points(axes, run.steps, values, style, shift)
        axes.set_title(title)
        if not any(run.trained for run in inside):
            axes.set(xlim=(-1, 1), xticks=[0], xticklabels=[inside[0].label(inside[0].last)])
    # From zero, so that heights are comparable, to the tallest interval, so that small scores are readable.
    top = min(100.0, max(axes.dataLim.ymax for axes in grid) * 1.08)
    grid[0].set_ylim(-0.03 * top, max(top, 10.0) + 0.03 * top)
    run_legend(figure, styles, seeds_legend(recipes))
    return figure


def accuracy_table(rows: Sequence[CheckpointRow], name: str = "accuracy") -> Table:
    """One row per checkpoint: accuracy with its interval, and marks where it changed beyond noise.

    Benchmarks are in the published order, then their average. The run is shown if there are several.
    """
    many_runs = len({row.run for row in rows}) > 1
    data, texts = [], []
    for row in rows:
        numbers: dict[str, object] = {"run": row.run, "step": row.step, "checkpoint": row.label}
        cells = {"run": row.run, "checkpoint": row.label} if many_runs else {"checkpoint": row.label}
        for column, cell in row.cells.items():
            gaps = {f"{column}_difference": cell.difference, f"{column}_from_above": cell.from_above}
            numbers |= interval_columns({column: cell.accuracy, **gaps})
            cells[f"{column} (%)"] = f"{interval_text(cell.accuracy, percent)} {cell.marks}".strip()
        data.append(numbers)
        texts.append(cells)
    bold = tuple(position for position, row in enumerate(rows) if row.best)
    names = {name for row in rows for name in row.cells}
    ordered = [*in_order(names - {AVERAGE}), *(names & {AVERAGE})]
    columns = [*(["run"] if many_runs else []), "checkpoint", *(f"{column} (%)" for column in ordered)]
    return Table(name, pd.DataFrame(data), pd.DataFrame(texts)[columns].fillna("–"), bold)


def differences_table(rows: Sequence[CheckpointRow]) -> Table:
    """The difference of each checkpoint to the base model, with its interval."""
    kept = [row for row in rows if any(cell.difference for cell in row.cells.values())]
    texts, data = [], []
    for row in kept:
        cells = {"run": row.run, "checkpoint": row.label}
        numbers: dict[str, object] = {"run": row.run, "step": row.step}
        for column, cell in row.cells.items():
            gap = cell.difference
            if gap is not None:
                cells[f"{column} (points)"] = f"{interval_text(gap, points)} {BASE_MARKS[gap.change]}"
                numbers |= interval_columns({column: gap})
        data.append(numbers)
        texts.append(cells)
    columns = ["run", "checkpoint"]
    return Table("differences", pd.DataFrame(data), pd.DataFrame(texts, columns=None if texts else columns).fillna("–"))


def settings_sentence(run: RunResults) -> str:
    """How the benchmarks of a run were asked; their names are left out where all were asked alike."""
    texts = {name: run.settings_text(run.last, name) for name in run.benchmarks}
    alike: dict[str, list[str]] = {}
    for name, text in texts.items():
        alike.setdefault(text, []).append(name)
    return next(iter(alike)) if len(alike) == 1 else "; ".join(f"{', '.join(alike[text])}: {text}" for text in alike)


def content(report: ReportData) -> Content:
    """The figure, a table of all runs, one of differences, and one for each run."""
    every_row = [row for rows in report.rows.values() for row in rows]
    by_run = [accuracy_table(rows, f"accuracy-{name.replace('/', '-')}") for name, rows in report.rows.items()]
    return Content(
        figures={"heldout_accuracy": plot_heldout_accuracy(report.recipes)},
        tables=[accuracy_table(every_row), differences_table(every_row), *by_run],
        values={"asked_with": {run.name: settings_sentence(run) for run in report.runs}},
    )


ACCURACY_CAPTION = (
    "Held-out accuracy of every checkpoint in percent, with its 95 % interval. ▲ rose and ▼ fell against the base "
    "model beyond noise, ≈ cannot tell; ↑ and ↓ against the row above. A row is bold only if it is beyond noise above "
    "every other row of its run."
)
SECTION = Section(
    order=200,
    title="Held-out accuracy",
    anchor="accuracy",
    content=content,
    figures={
        "heldout_accuracy": (
            "Held-out accuracy (avg@k) of each checkpoint, on problems that were not trained on. Step 0 is the base "
            "model. Bars are 95 % intervals, clustered by problem. Overlapping bars do not mean that two checkpoints "
            "are equal: the test is the paired difference in the table, because both answered the same problems. "
            "Averages share a panel only if they are of the same benchmarks. Runs are shifted horizontally to keep "
            "their bars apart. Where a recipe has several training seeds, each is a thin line, and the band is the 95 "
            "% interval of their mean for new seeds and new problems."
        )
    },
    numbers={"heldout_accuracy": "accuracy"},
    tables={
        "accuracy": ACCURACY_CAPTION,
        "accuracy-": ACCURACY_CAPTION,
        "differences": (
            "Difference of each checkpoint to its base model in points, with a 95 % interval, paired on the same "
            "problems."
        ),
    },
    text="""\
{{ figure("heldout_accuracy") }}
{% for run, rows in report.rows.items() %}
{{ accuracy_table(run, rows, "settings.html#settings-" ~ loop.index0, titles[run], asked_with[run]) }}
{% endfor %}
<p class="soft">Each number links to its completions, each run's name to its settings. Accuracy is in percent (avg@k
over all completions) with its 95&nbsp;% interval. Below it is the difference to the base model on the same problems, in
points, with a paired 95&nbsp;% interval: ▲ (rose) and ▼ (fell) if the interval excludes zero, ≈ (cannot tell) if not. ↑
and ↓ mark differences to the row above that are beyond noise. Each mark holds for itself: of the marks on differences
that are none, one in twenty is wrong. A row is bold only if its average is beyond noise above that of every other
row.</p>
""",
)
