"""What one believes of two models after their samples, given a prior: Bayes@N, for those who want it beside the test.

Prior: on each problem, each model's chance is uniform from 0 to 1, all independent. So c right of k answers give the
posterior Beta(c + 1, k - c + 1), with mean (c + 1) / (k + 2) (Hariri et al. 2025, "Don't Pass@k: A Bayesian Framework
for Large Language Model Evaluation", arXiv:2510.04265). It is about these same problems. With few repeats the prior
weighs much: it draws both models towards 50 %, and a difference towards none by k / (k + 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import stats

from eval.statistics.accuracy import Correct, Estimate


@dataclass(frozen=True)
class Posterior:
    """Of one benchmark: both accuracies and the second less the first, each with its 95 % credible interval."""

    benchmark: str
    first: Estimate
    second: Estimate
    difference: Estimate
    better: float  # the probability that the second is more accurate


def _moments(correct: Correct) -> tuple[float, float]:
    """Mean and variance of the accuracy over the problems."""
    n, k = correct.shape
    means = (correct.sum(axis=1) + 1) / (k + 2)
    return float(means.mean()), float((means * (1 - means)).sum()) / (k + 3) / n**2


def _credible(mean: float, variance: float) -> Estimate:
    half = float(stats.norm.ppf(0.975)) * math.sqrt(variance)
    return Estimate(mean, mean - half, mean + half)


def posterior(benchmark: str, first: Correct, second: Correct) -> Posterior:
    """The posterior of two models on one benchmark; sums over problems are taken as normal.

    Args:
        benchmark: its name.
        first: right answers, of shape (problems, repeats).
        second: likewise on the same problems, with its own repeats.
    """
    (one, of_one), (two, of_two) = _moments(first), _moments(second)
    gap, variance = two - one, of_one + of_two
    better = float(stats.norm.cdf(gap / math.sqrt(variance)))
    return Posterior(benchmark, _credible(one, of_one), _credible(two, of_two), _credible(gap, variance), better)
