"""Intervals of means, differences and quotients of quantities that need not be shares."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from eval.statistics import Estimate

Numbers = npt.NDArray[np.float64]


class NotMeasured(Exception):
    """What a rule measures is not stored; the text says what is missing."""


def mean(values: Sequence[float] | Numbers, confidence: float = 0.95) -> Estimate:
    """The mean of independent values with Student's t interval; without limits if there is only one value."""
    sample = np.asarray(values, dtype=float)
    value, n = float(sample.mean()), len(sample)
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1) * sample.std(ddof=1) / math.sqrt(n)) if n > 1 else math.inf
    return Estimate(value, value - half, value + half)


def difference(first: Estimate, second: Estimate) -> Estimate:
    """`second` less `first`, which are independent: their half-widths are added in quadrature."""
    value = second.value - first.value
    below = math.hypot(second.value - second.low, first.high - first.value)
    above = math.hypot(second.high - second.value, first.value - first.low)
    return Estimate(value, value - below, value + above)


def linear_ratio(counts: Numbers, sizes: Numbers) -> Numbers:
    """Values per problem whose mean is the share sum(counts) / sum(sizes), and whose spread gives its variance.

    (Cochran 1977, Sampling Techniques, equation 6.13, linearised; as in eval.statistics.ratio.)

    Args:
        counts: of each problem, what is counted.
        sizes: of each problem, of how many; NaN comes back if there are none at all.
    """
    if not sizes.sum():
        return np.full(len(sizes), np.nan)
    share = counts.sum() / sizes.sum()
    return np.asarray(share + (counts - share * sizes) / sizes.mean(), dtype=float)


def ratio(below: Estimate, above: Estimate) -> Estimate:
    """Their quotient, by the difference of the logarithms."""

    def log(part: Estimate) -> Estimate:
        return Estimate(*(math.log(value) if value > 0 else -math.inf for value in part))

    if below.value <= 0 or above.value <= 0:
        raise NotMeasured("a mean of zero has no ratio")
    gap = difference(log(below), log(above))
    return Estimate(*(math.exp(value) if value < 700 else math.inf for value in gap))
