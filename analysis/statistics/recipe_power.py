"""The power of the recipes' test: both of its parts have to find a difference, each with a variance of few seeds.

The estimated variances are drawn (chi-squared), and the share of draws with a verdict is the power. A formula with one
noncentral t distribution is too high where few seeds are, because the two tests disagree there.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from eval.statistics import significance

Floats = npt.NDArray[np.float64]
DRAWS = 1000  # the power is good to 2 % at 80 %


class Noise(NamedTuple):
    """What hides a difference of two recipes.

    Attributes:
        seeds: trainings of both sides; of pairs of trainings with one seed, their number alone.
        seed: variance of a training's mean accuracy, or of the difference in a pair.
        problems: variance that the choice of problems gives the difference.
        problem_df: degrees of freedom of its estimate.
    """

    seeds: tuple[int, ...]
    seed: float
    problems: float
    problem_df: float

    @property
    def deviation(self) -> float:
        """Standard deviation of the observed difference."""
        return math.sqrt(self.seed * sum(1 / count for count in self.seeds) + self.problems)


@cache
def _drawn_variances(df: int) -> Floats:
    return np.asarray(np.random.default_rng(df).chisquare(df, DRAWS) / df, dtype=np.float64)


def edges(noise: Noise, alpha: float) -> Floats:
    """The observed differences from which on both tests find one, by draws of the estimated variances: (draws,)."""
    drawn = [noise.seed * _drawn_variances(count - 1) for count in noise.seeds]
    problems = noise.problems * np.random.default_rng(0).chisquare(noise.problem_df, DRAWS) / noise.problem_df
    df = sum(noise.seeds) - len(noise.seeds)
    pooled = sum((count - 1) * one for count, one in zip(noise.seeds, drawn, strict=True)) / df
    share = sum(1 / count for count in noise.seeds)
    welch = [(one / count, count - 1.0) for count, one in zip(noise.seeds, drawn, strict=True)]
    both = []
    for seeds in (welch, [(pooled * share, float(df))]):
        pieces = [*seeds, (problems, noise.problem_df)]
        variance = np.maximum(sum(piece for piece, _ in pieces), 1e-30)
        freedom = variance**2 / np.maximum(sum(piece**2 / own for piece, own in pieces), 1e-60)
        both.append(stats.t.ppf(1 - alpha / 2, freedom) * np.sqrt(variance))
    return np.asarray(np.maximum(*both), dtype=np.float64)


def power(noise: Noise, gap: float, alpha: float) -> float:
    """The chance that a true difference is found, in its direction.

    Args:
        noise: of the comparison.
        gap: the true difference, a fraction.
        alpha: two-sided level.
    """
    return _share_found(edges(noise, alpha), abs(gap), noise.deviation)


def _share_found(needed: Floats, gap: float, deviation: float) -> float:
    if not deviation:
        return float(gap > 0)
    return float(stats.norm.cdf((gap - needed) / deviation).mean())


def detectable(noise: Noise, alpha: float, wanted: float = significance.POWER) -> float:
    """The true difference that is found with this power.

    Args:
        noise: of the comparison.
        alpha: two-sided level.
        wanted: chance of finding it.
    """
    needed, deviation = edges(noise, alpha), noise.deviation
    if not deviation:
        return 0.0
    most = float(needed.max()) + 10 * deviation
    return float(optimize.brentq(lambda gap: _share_found(needed, gap, deviation) - wanted, 0.0, most, rtol=1e-4))
