"""What differs between two versions: packages, formulas, verdicts, gains; plain data for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.results import RunResults
from analysis.statistics import checkpoint_difference
from conformance.compare import tolerance
from eval import statistics

LABELS = {"True": "right", "False": "wrong"}
PARTS = ("value", "gradient", "step")  # of a formula: columns of matrix.csv


def changed_versions(before: Mapping[str, str], after: Mapping[str, str]) -> list[list[str]]:
    """The packages of two locks that differ: name, version before, version after; empty where there is none."""
    names = sorted(before.keys() | after.keys())
    return [[name, before.get(name, ""), after.get(name, "")] for name in names if before.get(name) != after.get(name)]


def changed_formulas(before: Path, after: Path) -> list[list[str]]:
    """The formulas that two releases compute differently: formula, framework, before, after.

    Args:
        before: conformance's matrix.csv of one release.
        after: of the other, of the same cases.
    """
    keys = ["formula", "framework"]
    both = pd.read_csv(before).merge(pd.read_csv(after), on=keys, how="outer", suffixes=("_before", "_after"))
    rows = []
    for _, row in both.iterrows():
        old, new = ([row[f"{part}_{side}"] for part in PARTS] for side in ("before", "after"))
        rounding = tolerance(row["formula"])
        if any(_differs(one, other, rounding) for one, other in zip(old, new, strict=True)):
            rows.append([str(row["formula"]), str(row["framework"]), _distance(old), _distance(new)])
    return rows


def _differs(one: float, other: float, rounding: float) -> bool:
    """Whether only one of them is there, or they are further apart than rounding takes them."""
    if pd.isna(one) or pd.isna(other):
        return bool(pd.isna(one) != pd.isna(other))
    return abs(one - other) > rounding


def _distance(parts: Sequence[float]) -> str:
    return "cannot be expressed" if pd.isna(parts[0]) else " / ".join(f"{part:.0e}" for part in parts)


def changed_verdicts(
    pairs: Sequence[Mapping[str, Any]], before: Sequence[str], after: Sequence[str]
) -> list[list[str]]:
    """The pairs with another verdict: gold, answer, before, after, and the label where there is one.

    Args:
        pairs: with `gold`, `answer`, and perhaps `right`.
        before: their verdicts.
        after: the same of the new version.
    """
    return [
        [pair["gold"], pair["answer"], old, new, LABELS.get(str(pair.get("right")), "")]
        for pair, old, new in zip(pairs, before, after, strict=True)
        if old != new
    ]


def gains(before: RunResults, after: RunResults) -> list[dict[str, Any]]:
    """By benchmark: accuracy of the base model and gain of the last checkpoint, before and after, and the change of the
    last checkpoint's accuracy, paired by problem. Estimates are [value, low, high], fractions.

    Args:
        before: a run's results with the old version.
        after: the same run's with the new one.
    """
    sides = {"before": before, "after": after}
    return [
        {
            "benchmark": name,
            **{f"base_{side}": list(checkpoint_difference.accuracy(run, 0, name)) for side, run in sides.items()},
            **{
                f"gain_{side}": list(checkpoint_difference.difference(run, run.last, name))
                for side, run in sides.items()
            },
            "change": last_change(before, before.last, after, after.last, name),
        }
        for name in before.benchmarks
    ]


def evaluations(before: RunResults, after: RunResults) -> list[dict[str, Any]]:
    """By benchmark: accuracy of one checkpoint before and after, the change, and how many completions are the same.

    Args:
        before: the run that has the checkpoint as its last.
        after: the same checkpoint, evaluated alone.
    """
    return [
        {
            "benchmark": name,
            "before": list(checkpoint_difference.accuracy(before, before.last, name)),
            "after": list(checkpoint_difference.accuracy(after, after.last, name)),
            "change": last_change(before, before.last, after, after.last, name),
            "same": _same_completions(before, after, name),
        }
        for name in before.benchmarks
    ]


def last_change(before: RunResults, first: int, after: RunResults, second: int, benchmark: str) -> list[float] | None:
    """Accuracy after less accuracy before, paired by problem; None where the problems differ."""
    old, new = before.correct(first, benchmark), after.correct(second, benchmark)
    if before.problems(benchmark) != after.problems(benchmark) or old.shape != new.shape:
        return None
    return list(statistics.paired_difference(old, new, clusters=before.clusters(benchmark)))


def _same_completions(before: RunResults, after: RunResults, benchmark: str) -> str:
    """`298 of 300`."""
    keys = ["problem_id", "repeat"]
    old, new = (run.samples(run.last, benchmark)[[*keys, "completion"]] for run in (before, after))
    both = old.merge(new, on=keys)
    return f"{int((both['completion_x'] == both['completion_y']).sum())} of {len(both)}"
