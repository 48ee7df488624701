"""The main result of a run in one sentence, true to its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.report.accuracy import AVERAGE, MARKS, Row, overall
from analysis.report.diagnostics import Finding
from analysis.report.run_comparison import About
from analysis.results import BASE, Run, in_order
from analysis.table_export import percent, points

MOST_NAMED = 6  # benchmarks; of more only the number is told


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
    """Different names in words, as in `a, b and c`: benchmarks in the published order, others by name."""
    ordered = in_order(set(names))
    return f"{', '.join(ordered[:-1])} and {ordered[-1]}" if len(ordered) > 1 else ordered[0]


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _what(runs: Sequence[Run], facts: dict[str, About], scale: str) -> str:
    """What was run: recipes and frameworks of what was trained, and how much of it was made elsewhere."""
    trained, parts = [run for run in runs if run.trained], []
    if trained:
        frameworks = [facts[run.name].framework for run in trained if facts[run.name].framework != "–"]
        through = f" through {_listed(frameworks)}" if frameworks else ""
        recipes = _listed(run.name.split("/")[0] for run in trained)
        parts.append(f"{_count(len(trained), 'run')} of {recipes}{through} at {scale} scale")
    if elsewhere := len(runs) - len(trained):
        parts.append(f"{_count(elsewhere, 'run')} of generations made elsewhere")
    problems = {name: len(run.problems(name)) for run in runs for name in run.benchmarks}
    on = _listed(problems) if len(problems) <= MOST_NAMED else f"{len(problems)} benchmarks"
    return (
        f"{' and '.join(parts)}: {_count(sum(len(run.steps) for run in runs), 'checkpoint')} gave "
        f"{_count(sum(len(run.graded) for run in runs), 'graded completion')} on "
        f"{_count(sum(problems.values()), 'problem')} of {on}."
    )


def _change(rows: dict[str, list[Row]]) -> str:
    """In how many runs accuracy changed, and the largest change; the highest accuracy where nothing can be compared."""
    last = {name: own[-1].cells[overall(own[-1].cells)] for name, own in rows.items()}
    gaps = {name: cell.difference for name, cell in last.items() if cell.difference}
    if gaps:
        of = {change: sum(gap.change == change for gap in gaps.values()) for change in MARKS}
        name, gap = max(gaps.items(), key=lambda item: abs(item[1].value))
        return (
            f"From base model to last checkpoint held-out accuracy rose beyond noise in {of['rose']} of "
            f"{_count(len(gaps), 'run')}, fell in {of['fell']}, and cannot be told in {of['cannot tell']}; the largest "
            f"change is {points(gap.value)} points (95\N{NO-BREAK SPACE}% interval {points(gap.low)} to "
            f"{points(gap.high)}) in {name}."
        )
    name, cell = max(last.items(), key=lambda item: item[1].accuracy.value)
    shown, lacking = cell.accuracy, "there is no" if len(last) == 1 else "no run has a"
    return (
        f"The highest accuracy is {_share(shown.value)} (95\N{NO-BREAK SPACE}% interval {percent(shown.low)} to "
        f"{percent(shown.high)}) in {name}, and {lacking} second checkpoint to compare it with."
    )


def _trouble(runs: Sequence[Run], warnings: Sequence[Finding]) -> str:
    """How many warnings there are, whether a run collapsed, and where most completions were cut off."""
    collapsed: dict[str, str] = {}
    for found in warnings:
        if found.topic == "collapse":
            collapsed.setdefault(found.run, found.text)
    if collapsed:
        name, text = next(iter(collapsed.items()))
        show = "shows" if len(collapsed) == 1 else "show"
        first = f"{_count(len(collapsed), 'run')} {show} signs of collapse ({name}: {text})"
    elif any(run.trained for run in runs):
        first = "No run shows a sign of collapse"
    else:
        first = "There is no training to look at"
    scores = pd.concat([run.scores for run in runs]).dropna(subset="truncated_rate")
    if scores.empty:
        cut = "how completions ended is not known"
    elif not (most := float(scores["truncated_rate"].max())):
        cut = "no completion is known to have been cut off"
    else:
        row = scores.iloc[int(scores["truncated_rate"].to_numpy().argmax())]
        cut = (
            f"the most truncated score is {_share(most)} cut off ({row['run']}, step {row['step']}, {row['benchmark']})"
        )
    follow = f"{_count(len(warnings), 'warning')} {'follows' if len(warnings) == 1 else 'follow'} below"
    return f"{first}, {cut}, and {follow if warnings else 'there are no warnings'}."


def summary(
    runs: Sequence[Run], rows: dict[str, list[Row]], facts: dict[str, About], warnings: Sequence[Finding], scale: str
) -> list[str]:
    """What was run, what came of it, and what to beware of, in three sentences of numbers."""
    return [_what(runs, facts, scale), _change(rows), _trouble(runs, warnings)]
