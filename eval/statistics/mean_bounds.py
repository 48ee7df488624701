"""Tests of a mean of bounded values that hold however few of the values differ, for one sample per problem or many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
DRAWS = 50_000  # the p-value is good to about 0.0004 at 0.007


def _weighted_means(values: Floats, lowest: float, draws: int, random: np.random.Generator) -> Floats:
    """Means of the values and one more at their lower bound, with weights uniform on the simplex: shape (draws,)."""
    sizes, times = np.unique(np.append(values.round(12), lowest), return_counts=True)
    weights = random.standard_gamma(times, (draws, len(sizes)))
    return np.asarray(weights @ sizes / weights.sum(axis=1), dtype=np.float64)


def exceeds(parts: Sequence[Floats], null: float, draws: int = DRAWS, seed: int = 0) -> float:
    """One-sided p-value of the hypothesis that the mean is at most `null`, for the mean over several benchmarks.

    Gaffke's bound (2005, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
    variable", Mathematical Methods of Statistics 14:451; Phan, Thomas and Learned-Miller 2021, "Towards practical mean
    bounds for small samples"): the lowest possible value is added to the sample, and the sample is weighted at random.
    With two values it is the exact binomial test. For others its level is not proven, but no case above it is known.

    Args:
        parts: per benchmark, one difference per problem, from -1 to 1, of shape (problems,).
        null: a mean difference.
        draws: random weightings.
        seed: of the weightings.
    """
    random = np.random.default_rng(seed)
    means = sum((_weighted_means(part, -1.0, draws, random) for part in parts), np.zeros(draws)) / len(parts)
    return float((1 + np.count_nonzero(means <= null)) / (1 + draws))
