"""What a rule can measure in training logs: the level of a column, its change, and how rough it is.

Steps of one training are alike one after the other, trainings with different seeds are independent: with several seeds
a measurement is one number per seed, and its interval that of their mean. With one, it is that of the training alone
(analysis.measures.training_log), whose arguments these have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from analysis.measures import training_log
from analysis.results import RunResults
from analysis.statistics import mean_intervals, recipe_difference
from analysis.statistics.mean_intervals import NotMeasured
from eval.statistics import Estimate

Seeds = Sequence[RunResults]


def _over_seeds(of_one: Sequence[Estimate], confidence: float) -> Estimate:
    """The mean over seeds; of one seed the interval of the training."""
    return of_one[0] if len(of_one) == 1 else mean_intervals.mean([one.value for one in of_one], confidence)


def training(run: Seeds, column: str, steps: Sequence[int], confidence: float = 0.95) -> Estimate:
    """The mean of a column of the training log over steps, the first and last included."""
    return _over_seeds([training_log.training(one, column, steps) for one in run], confidence)


def training_change(
    run: Seeds, column: str, before: Sequence[int], after: Sequence[int], confidence: float = 0.95
) -> Estimate:
    """The mean of a column over later steps less that over earlier ones, of the same trainings."""
    return _over_seeds([training_log.training_change(one, column, before, after) for one in run], confidence)


def training_between(
    run: Seeds,
    against: Seeds,
    column: str,
    steps: Sequence[int],
    against_steps: Sequence[int],
    confidence: float = 0.95,
) -> Estimate:
    """The mean of a column in one recipe less that in another, each over its own steps."""
    first, second = (
        [training_log.training(one, column, window) for one in seeds]
        for seeds, window in ((against, against_steps), (run, steps))
    )
    if min(len(first), len(second)) == 1:
        return mean_intervals.difference(first[0], second[0])
    sides = [np.array([one.value for one in side]) for side in (first, second)]
    return recipe_difference.difference_of_seeds(sides[0], sides[1], confidence)


def _log_ratio(
    run: Seeds, against: Seeds, level: Callable[[RunResults], Estimate], below: Callable[[RunResults], Estimate],
    confidence: float,
) -> Estimate:  # fmt: skip
    """Of a level in one recipe over that in another, by seed where both are the same trainings."""
    one, two = [below(each) for each in against], [level(each) for each in run]
    if min(len(one), len(two)) == 1:
        return mean_intervals.ratio(one[0], two[0])
    if min(each.value for each in (*one, *two)) <= 0:
        raise NotMeasured("a mean of zero has no ratio")
    sides = [np.log([each.value for each in side]) for side in (one, two)]
    if [each.name for each in run] == [each.name for each in against]:
        gap = mean_intervals.mean(sides[1] - sides[0], confidence)
    else:
        gap = recipe_difference.difference_of_seeds(sides[0], sides[1], confidence)
    return Estimate(*(math.exp(min(value, 700.0)) for value in gap))


def training_ratio(
    run: Seeds,
    against: Seeds,
    column: str,
    steps: Sequence[int],
    against_steps: Sequence[int],
    confidence: float = 0.95,
) -> Estimate:
    """The mean of a column that is never negative in one recipe over that in another, each over its own steps."""
    return _log_ratio(
        run, against, lambda one: training_log.training(one, column, steps),
        lambda one: training_log.training(one, column, against_steps), confidence,
    )  # fmt: skip


def roughness_ratio(
    run: Seeds,
    against: Seeds,
    column: str,
    steps: Sequence[int],
    against_steps: Sequence[int],
    confidence: float = 0.95,
) -> Estimate:
    """How much more a column changes from step to step, relative to its mean, in one recipe than in another."""
    return _log_ratio(
        run, against, lambda one: training_log.roughness(one, column, steps),
        lambda one: training_log.roughness(one, column, against_steps), confidence,
    )  # fmt: skip
