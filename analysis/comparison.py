"""Checkpoints against the base model, on the same problems: what rose, what fell, what cannot be told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.results import BASE, Run
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


def _correct(samples: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether each completion was right, of shape (problems, repeats), problems in the order of their ids.

    What could not be graded earns nothing, as in the scores.
    """
    ordered = samples.sort_values(["problem_id", "repeat"])
    return ordered["verdict"].eq("correct").to_numpy(dtype=bool).reshape(ordered["problem_id"].nunique(), -1)


def difference(run: Run, step: int, benchmark: str) -> Interval:
    """Accuracy of a checkpoint less the base model's, paired by problem."""
    base, checkpoint = run.samples(BASE, benchmark), run.samples(step, benchmark)
    return Interval(*statistics.paired_difference(_correct(base), _correct(checkpoint)))


def average_difference(run: Run, step: int) -> Interval:
    """The unweighted mean over the benchmarks of the paired differences to the base model."""
    return mean_of([difference(run, step, benchmark) for benchmark in run.benchmarks])
