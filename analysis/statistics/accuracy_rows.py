"""Rows of the accuracy tables: one per checkpoint, each cell with its interval and its change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from analysis.results import RunResults
from analysis.statistics import checkpoint_difference
from eval.statistics import Estimate

AVERAGE = "average"
BASE_MARKS = {"rose": "▲", "fell": "▼", "cannot tell": "≈"}  # against the base model
ROW_MARKS = {"rose": "↑", "fell": "↓", "cannot tell": ""}  # against the row above


@dataclass(frozen=True)
class AccuracyCell:
    """An accuracy and, except in the first row, its differences to the base model and to the row above."""

    accuracy: Estimate
    difference: Estimate | None
    from_above: Estimate | None = None

    @property
    def marks(self) -> str:
        """▲ or ▼ where the difference to the base model is beyond noise, ↑ or ↓ where that to the row above is."""
        base = BASE_MARKS[self.difference.change] if self.difference else ""
        return base + (ROW_MARKS[self.from_above.change] if self.from_above else "")


@dataclass(frozen=True)
class CheckpointRow:
    """One checkpoint: a cell for each benchmark and, if there are several, for their average.

    `best` is set only if the row's average (or only benchmark) is beyond noise above that of every other row.
    """

    run: str
    step: int
    label: str
    cells: dict[str, AccuracyCell]
    best: bool = False


def overall_column(cells: dict[str, AccuracyCell]) -> str:
    """The column by which rows are compared: the average, or the only benchmark."""
    return AVERAGE if AVERAGE in cells else next(iter(cells))


def _with_average(values: dict[str, Estimate]) -> dict[str, Estimate]:
    return values | ({AVERAGE: checkpoint_difference.mean_of(list(values.values()))} if len(values) > 1 else {})


def make_rows(
    name: str,
    labels: dict[int, str],
    benchmarks: Sequence[str],
    accuracy: Callable[[int, str], Estimate],
    difference: Callable[[int, int, str], Estimate],
) -> list[CheckpointRow]:
    """One row per checkpoint. The first one is the base model.

    Args:
        name: of the run.
        labels: names of the rows by step, in order.
        benchmarks: the columns.
        accuracy: gives the accuracy (fraction) of a step on a benchmark.
        difference: gives the accuracy of the second step less that of the first, on a benchmark.
    """
    steps = list(labels)

    def gaps(before: int, after: int) -> dict[str, Estimate]:
        return _with_average({benchmark: difference(before, after, benchmark) for benchmark in benchmarks})

    rows = []
    for position, step in enumerate(steps):
        values = _with_average({benchmark: accuracy(step, benchmark) for benchmark in benchmarks})
        base = gaps(steps[0], step) if position else {}
        above = base if position == 1 else gaps(steps[position - 1], step) if position else {}
        cells = {key: AccuracyCell(value, base.get(key), above.get(key)) for key, value in values.items()}
        rows.append(CheckpointRow(name, step, labels[step], cells))
    if len(rows) > 1:
        column = overall_column(rows[0].cells)
        top = max(range(len(rows)), key=lambda i: rows[i].cells[column].accuracy.value)
        others = [step for step in steps if step != steps[top]]
        if all(gaps(step, steps[top])[column].change == "rose" for step in others):
            rows[top] = replace(rows[top], best=True)
    return rows


def run_rows(run: RunResults) -> list[CheckpointRow]:
    """The rows of a run. Differences are paired by problem."""
    return make_rows(
        run.name,
        {step: run.label(step) for step in run.steps},
        run.benchmarks,
        lambda step, benchmark: checkpoint_difference.accuracy(run, step, benchmark),
        lambda before, after, benchmark: checkpoint_difference.difference(run, after, benchmark, before),
    )
