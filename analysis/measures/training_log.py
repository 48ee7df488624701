"""What a rule can measure in training logs: the level of a column, its change, and how rough it is.

Steps count over all stages of a run; a window includes its first and last step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from analysis.results import RunResults
from analysis.statistics.mean_intervals import NotMeasured, Numbers, difference, mean
from eval.statistics import Estimate

HIGHEST = 0.95  # correlation of neighbouring steps that is reckoned with
FEWEST = 6  # steps, for a mean change from step to step


def _values(run: RunResults, column: str, steps: Sequence[int]) -> Numbers:
    first, last = steps
    chosen = run.log[run.log["step"].between(first, last)]
    if run.log.empty or run.log["step"].max() < last or chosen[column].notna().sum() < 2:
        raise NotMeasured(f"{run.name} has no {column} over steps {first} to {last}")
    return chosen[column].dropna().to_numpy(dtype=float)


def _mean(values: Numbers) -> Estimate:
    """The mean over steps, with an interval for values that are alike one after the other.

    Around their straight line they are taken as an autoregression of first order, whose correlation is estimated with a
    correction of its bias (as Kendall 1954, Biometrika 41:403; twice as large around a line); Student's interval then
    has the size and the variance of as many independent values. From 10 steps on, two equal levels seem different in 1
    to 5 % for correlations of 0 to 0.9.
    """
    n, value = len(values), float(values.mean())
    if n < 3:
        return mean(values)
    steps = np.arange(n) - (n - 1) / 2
    gaps = values - value - float(values @ steps) / float(steps @ steps) * steps
    squares = float(gaps @ gaps)
    correlation = float(gaps[1:] @ gaps[:-1]) / squares if squares else 0.0
    correlation = min(max((n * correlation + 2) / max(n - 6, 1), 0.0), HIGHEST)
    inflation = min((1 + correlation) / (1 - correlation), HIGHEST * n / 2)
    edge = float(stats.t.ppf(0.975, max(n / inflation - 2, 1)))
    half = edge * math.sqrt(squares / (n - 2 * inflation) * inflation / n)
    return Estimate(value, value - half, value + half)


def training(run: RunResults, column: str, steps: Sequence[int]) -> Estimate:
    """The mean of a column of the training log over steps, the first and last included."""
    return _mean(_values(run, column, steps))


def training_change(run: RunResults, column: str, before: Sequence[int], after: Sequence[int]) -> Estimate:
    """The mean of a column over later steps less that over earlier ones."""
    return difference(training(run, column, before), training(run, column, after))


def roughness(run: RunResults, column: str, steps: Sequence[int]) -> Estimate:
    """The mean change of a column from step to step, relative to its mean."""
    values = _values(run, column, steps)
    if len(values) < FEWEST or not values.mean():
        raise NotMeasured(f"{run.name} has too few steps of {column} over steps {steps[0]} to {steps[1]}")
    return _mean(np.abs(np.diff(values)) / abs(values.mean()))
