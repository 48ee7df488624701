"""Rows of accuracy: one per checkpoint, each cell with its interval, and what changed beyond noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from analysis.report import checkpoint_comparison
from analysis.report.checkpoint_comparison import Interval
from analysis.results import Run

AVERAGE = "average"
MARKS = {"rose": "▲", "fell": "▼", "cannot tell": "≈"}  # against the base model
STEPS = {"rose": "↑", "fell": "↓", "cannot tell": ""}  # against the row above


@dataclass(frozen=True)
class Cell:
    """An accuracy and, but for the first row, its difference to the base model's and to that of the row above."""

    accuracy: Interval
    difference: Interval | None
    from_above: Interval | None = None

    @property
    def marks(self) -> str:
        """▲ or ▼ where the difference to the base model is beyond noise, ↑ or ↓ where that to the row above is."""
        base = MARKS[self.difference.change] if self.difference else ""
        return base + (STEPS[self.from_above.change] if self.from_above else "")


@dataclass(frozen=True)
class Row:
    """One checkpoint: a cell for each benchmark, and for their average if there are several.

    `best` is set only where the row's average (or only benchmark) is beyond noise above that of every other row.
    """

    run: str
    step: int
    label: str
    cells: dict[str, Cell]
    best: bool = False


def overall(cells: dict[str, Cell]) -> str:
    """The column that a row is judged by: the average, or the only benchmark."""
    return AVERAGE if AVERAGE in cells else next(iter(cells))


def make_rows(
    name: str,
    labels: dict[int, str],
    benchmarks: Sequence[str],
    accuracy: Callable[[int, str], Interval],
    difference: Callable[[int, int, str], Interval],
) -> list[Row]:
    """One row per checkpoint, the first of which is the base model that the others are compared with.

    Args:
        name: of the run.
        labels: what each step's row is called, in order.
        benchmarks: the columns.
        accuracy: of a step on a benchmark.
        difference: of the second step's accuracy less the first's on a benchmark.
    """
    steps = list(labels)

    def gaps(before: int, after: int) -> dict[str, Interval]:
        found = {benchmark: difference(before, after, benchmark) for benchmark in benchmarks}
        return found | ({AVERAGE: checkpoint_comparison.mean_of(list(found.values()))} if len(benchmarks) > 1 else {})

    rows = []
    for position, step in enumerate(steps):
        values = {benchmark: accuracy(step, benchmark) for benchmark in benchmarks}
        values |= {AVERAGE: checkpoint_comparison.mean_of(list(values.values()))} if len(benchmarks) > 1 else {}
        base = gaps(steps[0], step) if position else {}
        above = base if position == 1 else gaps(steps[position - 1], step) if position else {}
        cells = {key: Cell(value, base.get(key), above.get(key)) for key, value in values.items()}
        rows.append(Row(name, step, labels[step], cells))
    if len(rows) > 1:
        column = overall(rows[0].cells)
        top = max(range(len(rows)), key=lambda i: rows[i].cells[column].accuracy.value)
        others = [step for step in steps if step != steps[top]]
        if all(gaps(step, steps[top])[column].change == "rose" for step in others):
            rows[top] = replace(rows[top], best=True)
    return rows


def run_rows(run: Run) -> list[Row]:
    """The rows of a run with samples: differences are paired by problem."""
    return make_rows(
        run.name,
        {step: run.label(step) for step in run.steps},
        run.benchmarks,
        lambda step, benchmark: checkpoint_comparison.accuracy(run, step, benchmark),
        lambda before, after, benchmark: checkpoint_comparison.difference(run, after, benchmark, before),
    )
