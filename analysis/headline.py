"""The main result of a run in one sentence, true to its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.accuracy import AVERAGE, MARKS, Row, overall
from analysis.results import BASE, Run
from analysis.written import percent, points


@dataclass(frozen=True)
class Headline:
    """`change` is rose, fell, cannot tell, or nothing to compare; `details` has one clause per benchmark."""

    run: str
    change: str
    sentence: str
    details: list[str]


def _size(value: float) -> str:
    return f"{abs(100 * value):.1f}"


def _share(value: float) -> str:
    return f"{percent(value)}\N{NO-BREAK SPACE}%"


def _place(row: Row) -> str:
    return f"at {row.label}" if row.step != BASE else f"for the {row.label}"


def headline(run: Run, rows: list[Row]) -> Headline:
    """Did held-out accuracy change from the base model to the last checkpoint, by how much, and how sure is that."""
    last = rows[-1]
    name = overall(last.cells)
    over = f"the mean of {len(run.benchmarks)} benchmarks" if name == AVERAGE else name
    before, cell = rows[0].cells[name].accuracy, last.cells[name]
    if cell.difference is None:
        interval = f"95\N{NO-BREAK SPACE}% interval {percent(before.low)} to {percent(before.high)}"
        what = f"Only the {last.label} was evaluated" if run.trained else "These generations were made elsewhere"
        sentence = f"{what}: {_share(before.value)} on {over} ({interval})."
        return Headline(run.name, "nothing to compare", sentence, [])
    gap = cell.difference
    accuracies = f"from {_share(before.value)} {_place(rows[0])} to {_share(cell.accuracy.value)} {_place(last)}"
    path, confidence = f"{accuracies}, on {over}", "95\N{NO-BREAK SPACE}% interval"
    if gap.change in ("rose", "fell"):
        near, far = sorted((abs(gap.low), abs(gap.high)))
        size = f"{_size(gap.value)} points ({confidence} {_size(near)} to {_size(far)})"
        sentence = f"Held-out accuracy {gap.change} by {size}, {path}."
    else:
        sentence = (
            f"Whether held-out accuracy changed cannot be told: the difference is {points(gap.value)} points "
            f"({confidence} {points(gap.low)} to {points(gap.high)}), {path}."
        )
    details = []
    if name == AVERAGE:
        for benchmark in run.benchmarks:
            own = last.cells[benchmark].difference
            assert own is not None
            details.append(
                f"{MARKS[own.change]} {benchmark} {points(own.value)} [{points(own.low)}, {points(own.high)}]"
            )
    return Headline(run.name, gap.change, sentence, details)
