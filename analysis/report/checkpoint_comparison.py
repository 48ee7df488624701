"""Checkpoints against each other on the same problems: what rose, what fell, what cannot be told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.results import Run
from eval import statistics


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval; accuracies and their differences are fractions, not percent."""

    value: float
    low: float
    high: float

    @property
    def change(self) -> str:
        """What a difference with this interval shows: rose, fell, or cannot tell."""
        if self.low > 0:
            return "rose"
        return "fell" if self.high < 0 else "cannot tell"


def mean_of(parts: Sequence[Interval]) -> Interval:
    """The unweighted mean of independent values, with its interval.

    The half-widths are added in quadrature on each side apart (MOVER: Zou and Donner, Statistics in Medicine 27:1693,
    2008, eq. 5), so that asymmetric intervals, as near 0 and 1, stay so.
    """
    count = len(parts)
    value = sum(part.value for part in parts) / count
    below = math.sqrt(sum((part.value - part.low) ** 2 for part in parts)) / count
    above = math.sqrt(sum((part.high - part.value) ** 2 for part in parts)) / count
    return Interval(value, value - below, value + above)


def accuracy(run: Run, step: int, benchmark: str) -> Interval:
    """avg@k of one checkpoint on one benchmark, with the interval of the SCORE table."""
    row = run.score(step, benchmark)
    return Interval(float(row["avg_at_k"]), float(row["ci_low"]), float(row["ci_high"]))


def average_accuracy(run: Run, step: int) -> Interval:
    """The unweighted mean over the benchmarks, as the published tables take it."""
    return mean_of([accuracy(run, step, benchmark) for benchmark in run.benchmarks])


def difference(run: Run, step: int, benchmark: str, before: int | None = None) -> Interval:
    """Accuracy of a checkpoint less that of an earlier one (default: the run's first), paired by problem."""
    earlier = run.correct(run.steps[0] if before is None else before, benchmark)
    return Interval(*statistics.paired_difference(earlier, run.correct(step, benchmark)))


def between_runs(first: Run, second: Run, benchmarks: Sequence[str]) -> Interval | None:
    """Average accuracy of the second run's last checkpoint less the first's, paired by problem.

    None where the two did not answer the same problems under the same protocol, so that a difference means nothing.
    """
    gaps = []
    for name in benchmarks:
        if name not in first.benchmarks or name not in second.benchmarks:
            return None
        if first.score(first.last, name)["protocol"] != second.score(second.last, name)["protocol"]:
            return None
        if first.problems(name) != second.problems(name):
            return None
        pair = first.correct(first.last, name), second.correct(second.last, name)
        gaps.append(Interval(*statistics.paired_difference(*pair)))
    return mean_of(gaps)
