"""What the published tables show, as sentences."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from analysis import reference
from analysis.pages.table_texts import points
from analysis.statistics.accuracy_rows import CheckpointRow
from analysis.statistics.checkpoint_difference import mean_of
from analysis.statistics.published_tables import rows, sizes
from eval import statistics
from eval.statistics import Estimate

FEW_PROBLEMS = 40  # benchmarks of at most this many get a sentence on how much they can show
COMPARED = {"rose": "above", "fell": "below", "cannot tell": "not distinguishable from"}


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
