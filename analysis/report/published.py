"""The published tables (results/reference/report_tables.csv), with intervals from the number of problems alone."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from analysis import reference
from analysis.statistics.accuracy_rows import CheckpointRow, make_rows
from analysis.statistics.checkpoint_difference import mean_of
from analysis.table_export import points
from eval import benchmark, statistics
from eval.statistics import Estimate
from system.errors import UserError

AVERAGE_PRINTED = "average_as_printed"
FEW_PROBLEMS = 40  # benchmarks of at most this many get a sentence on how much they can show
COMPARED = {"rose": "above", "fell": "below", "cannot tell": "not distinguishable from"}


@cache
def sizes() -> dict[str, int]:
    """Number of problems of each published benchmark."""
    return {name: benchmark.size(name) for name in reference.published_benchmarks()}


def table_names(path: Path = reference.PUBLISHED) -> list[str]:
    """The published tables, in their order."""
    return list(dict.fromkeys(reference.read_csv(path)["table"]))


def published(name: str, path: Path = reference.PUBLISHED) -> pd.DataFrame:
    """A published table: recipe, algorithm, checkpoint, step, the benchmarks and average_as_printed, as fractions.

    Raises:
        UserError: there is no table of this name.
    """
    figures = reference.read_csv(path)
    rows = figures[figures["table"] == name].sort_values("step", ignore_index=True)
    if rows.empty:
        raise UserError(f"{path.name} should have a table {name}, but has only {', '.join(table_names(path))}")
    accuracies = [*sizes(), AVERAGE_PRINTED]
    rows[accuracies] = rows[accuracies] / 100  # printed in percent
    return rows


def solved(share: float, of: int) -> int:
    """How many of `of` problems a printed share (fraction) means. Raises UserError if no whole number rounds to it."""
    count = round(share * of)
    if abs(round(100 * count / of, 1) - round(100 * share, 1)) > 1e-9:
        raise UserError(
            f"a printed {100 * share:.1f} % should be a share of {of} problems, but {count} of them are "
            f"{100 * count / of:.1f} %; correct results/reference"
        )
    return count


def estimate(share: float, of: int) -> Estimate:
    """A printed share of problems answered once, with its interval."""
    return statistics.avg_at_k(np.arange(of)[:, None] < solved(share, of))._replace(value=share)


def rows(name: str, path: Path = reference.PUBLISHED) -> list[CheckpointRow]:
    """The rows of a published table. Nothing is paired because there are no samples."""
    figures = {int(row["step"]): row for row in published(name, path).to_dict("records")}

    def of(step: int, name: str) -> Estimate:
        return estimate(figures[step][name], sizes()[name])

    return make_rows(
        f"published, table {name}",
        {step: str(row["checkpoint"]) for step, row in figures.items()},
        list(sizes()),
        of,
        lambda before, after, name: statistics.independent_difference(of(before, name), of(after, name)),
    )


def what_it_shows(tables: Iterable[str], path: Path = reference.PUBLISHED) -> list[str]:
    """Which of the published differences are beyond noise, as sentences made from the numbers."""
    made = {name: rows(name, path) for name in tables}
    sentences = [_table_sentence(name, rows) for name, rows in made.items()]
    counts = []
    for name, of in sizes().items():
        steps = [row.cells[name].from_above for rows in made.values() for row in rows[1:]]
        beyond = sum(step is not None and step.change != "cannot tell" for step in steps)
        counts.append(f"{beyond} of {len(steps)} on {name} (n = {of})")
    sentences.append(f"Differences between neighbouring rows that are beyond noise: {', '.join(counts)}.")
    return sentences + [_resolution_sentence(name, n) for name, n in sizes().items() if n <= FEW_PROBLEMS]


def _table_sentence(name: str, made: list[CheckpointRow]) -> str:
    base, last, top = made[0], made[-1], max(made, key=lambda row: row.cells["average"].accuracy.value)
    gap = last.cells["average"].difference
    assert gap is not None
    text = (
        f"Table {name}: {last.label} is {COMPARED[gap.change]} {base.label} on average ({points(gap.value)} points, "
        f"95 % interval {points(gap.low)} to {points(gap.high)})"
    )
    if top is not base:
        equal = [row for row in made if row is not top and _average_gap(row, top).change == "cannot tell"]
        verdict = (
            f"not distinguishable from {len(equal)} of the other {len(made) - 1} rows" if equal else "above all others"
        )
        text += f"; its best average, {100 * top.cells['average'].accuracy.value:.1f} at {top.label}, is {verdict}"
    return f"{text}."


def _average_gap(row: CheckpointRow, top: CheckpointRow) -> Estimate:
    """The average of the row `top` less that of another row of the same table."""
    pairs = [(row.cells[name].accuracy, top.cells[name].accuracy) for name in sizes()]
    return mean_of([statistics.independent_difference(*pair) for pair in pairs])


def _resolution_sentence(name: str, n: int) -> str:
    """The smallest difference around one half that n problems answered once can show."""
    half = n // 2
    need = next(k for k in range(1, n) if _beyond_noise(half, half + k, n))
    return (
        f"With {n} problems answered once, {name} can distinguish {half}/{n} only from {half + need}/{n} or more: "
        f"differences under {100 * need / n:.0f} points around one half are noise."
    )


def _beyond_noise(low: int, high: int, n: int) -> bool:
    pair = [statistics.avg_at_k(np.arange(n)[:, None] < count) for count in (low, high)]
    return statistics.independent_difference(pair[0], pair[1]).low > 0
