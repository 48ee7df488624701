"""The main result of a run in one sentence, true to its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.accuracy import AVERAGE, MARKS, Row, overall
from analysis.across_runs import About
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


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))


def summary(
    runs: Sequence[Run], rows: dict[str, list[Row]], facts: dict[str, About], warnings: int, scale: str
) -> list[str]:
    """What was run and what came of it, in three sentences of numbers."""
    frameworks = [facts[run.name].framework for run in runs if facts[run.name].framework != "–"]
    through = f" through {_listed(frameworks)}" if frameworks else ""
    checkpoints, completions = sum(len(run.steps) for run in runs), sum(len(run.graded) for run in runs)
    problems = {name: len(run.problems(name)) for run in runs for name in run.benchmarks}
    what = f"{len(runs)} run{'s' if len(runs) > 1 else ''} of {_listed(run.name.split('/')[0] for run in runs)}"
    first = (
        f"{what}{through} at {scale} scale: {checkpoints} checkpoint{'' if checkpoints == 1 else 's'} gave "
        f"{completions:,} graded completions on "
        f"{sum(problems.values()):,} problems of {_listed(problems)}."
    )
    last = {name: own[-1].cells[overall(own[-1].cells)] for name, own in rows.items()}
    gaps = {name: cell.difference for name, cell in last.items() if cell.difference}
    if gaps:
        of = {change: sum(gap.change == change for gap in gaps.values()) for change in MARKS}
        name, gap = max(gaps.items(), key=lambda item: abs(item[1].value))
        second = (
            f"From base model to last checkpoint held-out accuracy rose beyond noise in {of['rose']} of {len(gaps)}, "
            f"fell in {of['fell']}, and cannot be told in {of['cannot tell']}; the largest change is "
            f"{points(gap.value)} points (95\N{NO-BREAK SPACE}% interval {points(gap.low)} to {points(gap.high)}) "
            f"in {name}."
        )
    else:
        name, cell = max(last.items(), key=lambda item: item[1].accuracy.value)
        shown = cell.accuracy
        second = (
            f"The highest accuracy is {_share(shown.value)} (95\N{NO-BREAK SPACE}% interval {percent(shown.low)} to "
            f"{percent(shown.high)}) in {name}, and there is no second checkpoint to compare it with."
        )
    cut = pd.concat([run.scores["truncated_rate"] for run in runs]).dropna()
    unfinished = f"at most {_share(float(cut.max()))} of a score's completions were cut off" if len(cut) else (
        "how completions ended is not known"
    )  # fmt: skip
    third = f"{warnings} warning{'' if warnings == 1 else 's'} follow{'s' if warnings == 1 else ''}; {unfinished}."
    return [first, second, third]
