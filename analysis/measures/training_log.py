"""What a rule can measure in training logs: the level of a column, its change, and how rough it is.

Steps count over all stages of a run; a window includes its first and last step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.results import RunResults
from analysis.statistics.mean_intervals import NotMeasured, Numbers, difference, mean, ratio
from eval.statistics import Estimate

BLOCKS = 5  # of a window, because neighbouring steps are alike and count as less than their number


def _values(run: RunResults, column: str, steps: Sequence[int]) -> Numbers:
    first, last = steps
    chosen = run.log[run.log["step"].between(first, last)]
    if run.log.empty or run.log["step"].max() < last or chosen[column].notna().sum() < 2:
        raise NotMeasured(f"{run.name} has no {column} over steps {first} to {last}")
    return chosen[column].dropna().to_numpy(dtype=float)


def _mean(values: Numbers) -> Estimate:
    """The mean over steps, with the wider of the intervals from the single steps and from blocks of them."""
    blocks = [float(block.mean()) for block in np.array_split(values, min(BLOCKS, len(values)))]
    return max(mean(values), mean(blocks), key=lambda one: one.high - one.low)


def training(run: RunResults, column: str, steps: Sequence[int]) -> Estimate:
    """The mean of a column of the training log over steps, the first and last included."""
    return _mean(_values(run, column, steps))


def training_change(run: RunResults, column: str, before: Sequence[int], after: Sequence[int]) -> Estimate:
    """The mean of a column over later steps less that over earlier ones."""
    return difference(training(run, column, before), training(run, column, after))


def training_between(
    run: RunResults, against: RunResults, column: str, steps: Sequence[int], against_steps: Sequence[int]
) -> Estimate:
    """The mean of a column in one run less that in another, each over its own steps."""
    return difference(training(against, column, against_steps), training(run, column, steps))


def training_ratio(
    run: RunResults, against: RunResults, column: str, steps: Sequence[int], against_steps: Sequence[int]
) -> Estimate:
    """The mean of a column that is never negative in one run over that in another, each over its own steps."""
    return ratio(training(against, column, against_steps), training(run, column, steps))


def roughness_ratio(
    run: RunResults, against: RunResults, column: str, steps: Sequence[int], against_steps: Sequence[int]
) -> Estimate:
    """How much more a column changes from step to step, relative to its mean, in one run than in another."""

    def rough(one: RunResults, window: Sequence[int]) -> Estimate:
        values = _values(one, column, window)
        if len(values) <= BLOCKS or not values.mean():
            raise NotMeasured(f"{one.name} has too few steps of {column} over steps {window[0]} to {window[1]}")
        return _mean(np.abs(np.diff(values)) / abs(values.mean()))

    return ratio(rough(against, against_steps), rough(run, steps))
