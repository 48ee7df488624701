"""Significance of a difference, the power of its tests, and the samples needed to find it.

All tests are paired and clustered by problem: repeats of one problem are averaged first. Differences in accuracy are
fractions from -1 to 1, positive where the second model is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from eval.statistics import skewed_changes

Floats = npt.NDArray[np.float64]
ALPHA, POWER = 0.05, 0.8
DRAWS = 100_000  # of the permutation test over several benchmarks; its p-value is good to about 0.0007 at 0.05


def permutation(counts: npt.NDArray[np.int64]) -> float:
    """Two-sided p-value of the exact paired permutation test that the differences are due to chance.

    Under the null hypothesis the two models' results on a problem are exchangeable, so that each difference has
    either sign with probability 1/2, independently (Fisher 1935, "The Design of Experiments", section 21). The
    distribution of their sum over all 2^n signs is computed exactly, one magnitude at a time. With one sample per
    problem it is the exact McNemar test: the binomial test of the discordant problems.

    Args:
        counts: per problem, the difference as a whole number, such as right answers of equally many repeats.
    """
    sizes, times = np.unique(np.abs(counts[counts != 0]), return_counts=True)
    chances = np.ones(1)
    for size, number in zip(sizes, times, strict=True):
        binomial = stats.binom.pmf(np.arange(number + 1), number, 0.5)  # of number differences, how many are positive
        spread = np.zeros(len(chances) + 2 * int(size) * int(number))
        for positive, chance in enumerate(binomial):
            shift = 2 * int(size) * positive
            spread[shift : shift + len(chances)] += chance * chances
        chances = spread
    observed, middle = abs(int(counts.sum())), len(chances) // 2
    if observed == 0:
        return 1.0
    return float(min(1.0, 2 * chances[middle + observed :].sum()))


def permutation_of_mean(parts: Sequence[Floats], draws: int = DRAWS, seed: int = 0) -> float:
    """Two-sided p-value of the same test for the unweighted mean over several benchmarks, by random signs.

    The observed signs count as one of the draws (Phipson and Smyth 2010, "Permutation p-values should never be zero").

    Args:
        parts: per benchmark, the differences of its problems, of shape (problems,).
        draws: random draws of all signs.
        seed: of the draws.
    """
    random = np.random.default_rng(seed)
    total = np.zeros(draws)
    for differences in parts:
        sizes, times = np.unique(np.abs(differences[differences != 0]).round(12), return_counts=True)
        for size, number in zip(sizes, times, strict=True):
            total += size * (2.0 * random.binomial(number, 0.5, draws) - number) / len(differences)
    observed = abs(sum(float(part.mean()) for part in parts))
    return float((1 + np.count_nonzero(np.abs(total) >= observed - 1e-12)) / (1 + draws))


def student(differences: Floats, null: float = 0.0) -> float:
    """Two-sided p-value of Student's paired t test over problems that the mean difference is `null`."""
    n = len(differences)
    if n < 2:
        return 1.0
    deviation = float(differences.std(ddof=1))
    gap = float(differences.mean()) - null
    if deviation < 1e-12:  # all differences are equal: use the sign test over the problems
        return 1.0 if abs(gap) < 1e-12 else float(min(1.0, 2 * 0.5**n))
    return float(2 * stats.t.sf(abs(gap) / (deviation / math.sqrt(n)), n - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted so that the chance of any false positive stays below the nominal level (Holm 1979)."""
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def mcnemar_power(n: int, discordant: float, difference: float, alpha: float) -> float:
    """Power of the exact McNemar test, over the number of discordant problems and their split.

    Args:
        n: problems.
        discordant: chance that the models disagree on a problem, at least |difference|.
        difference: true difference in accuracy.
        alpha: two-sided level.
    """
    discordant = min(1.0, max(discordant, abs(difference)))
    if discordant == 0:
        return 0.0
    better = (discordant + abs(difference)) / (2 * discordant)
    m = np.arange(n + 1)
    # the most minority problems with which m discordant ones are still significant; -1 where none is
    edge = stats.binom.ppf(alpha / 2, m, 0.5).astype(int)
    edge = np.where(stats.binom.cdf(edge, m, 0.5) > alpha / 2, edge - 1, edge)
    power = np.where(edge >= 0, stats.binom.cdf(edge, m, 1 - better) + stats.binom.cdf(edge, m, better), 0.0)
    return float(np.sum(stats.binom.pmf(m, n, discordant) * np.minimum(power, 1.0)))


def student_power(n: int, deviation: float, difference: float, alpha: float) -> float:
    """Power of the paired t test over problems, which the permutation test approaches (noncentral t).

    Args:
        n: problems.
        deviation: standard deviation of the differences over problems.
        difference: true difference in accuracy.
        alpha: two-sided level.
    """
    if n < 2:
        return 0.0
    if deviation <= 0:
        return float(difference != 0)
    edge, shift = stats.t.ppf(1 - alpha / 2, n - 1), abs(difference) / (deviation / math.sqrt(n))
    tails = [stats.nct.sf(edge, n - 1, shift), stats.nct.cdf(-edge, n - 1, shift)]
    # scipy gives NaN far out, where the upper tail is 1 and the lower 0
    return float(np.nan_to_num(tails[0], nan=float(shift > edge)) + np.nan_to_num(tails[1], nan=0.0))


class Spread(NamedTuple):
    """Variance of the difference on one problem: between problems, and of one sample of each model within a problem."""

    between: float
    within: float


def spread(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> Spread | None:
    """Both parts of the variance, from samples (problems, repeats) of two models; None without repeats in both.

    Within: the unbiased p(1-p) of each problem and model, averaged. Between: what the variance of the differences has
    over that, not below 0 (the usual moment estimate of a one-way random-effects model).
    """
    if min(first.shape[1], second.shape[1]) < 2:
        return None
    parts = [side.astype(float).var(axis=1, ddof=1).mean() for side in (first, second)]
    gaps = second.mean(axis=1) - first.mean(axis=1)
    noise = parts[0] / first.shape[1] + parts[1] / second.shape[1]
    return Spread(max(0.0, float(gaps.var(ddof=1) - noise)), float(sum(parts)))


def assumed_spread(accuracy: float, likeness: float, change: float) -> Spread:
    """The spread where there are no samples.

    Args:
        accuracy: of both models, about.
        likeness: share of the variance of a sample that is between problems (intraclass correlation): 1 where each
            problem is always or never solved, 0 where all are equally hard.
        change: standard deviation over problems of how much the true chance of solving one changes.
    """
    return Spread(change**2, 2 * accuracy * (1 - accuracy) * (1 - likeness))


class Needed(NamedTuple):
    """The samples that find a difference with the wanted power."""

    repeats: int | None  # per problem; None if no number suffices
    limit: float  # the smallest difference that any number of repeats could find with these problems
    problems: int  # problems with which one repeat each would suffice


def needed(
    n: int,
    difference: float,
    parts: Spread,
    alpha: float = ALPHA,
    power: float = POWER,
    hidden: float = skewed_changes.MOST,
) -> Needed:
    """How many repeats per problem find a true difference with this power.

    The variance of the mean difference is (between + within / k) / n: more repeats k shrink only the second part, more
    problems n both (Miller 2024, arXiv:2411.00640, section 3.1). With n problems the first part sets a limit, and few
    problems another one (skewed_changes).

    Args:
        n: problems.
        difference: true difference in accuracy.
        parts: variances of the difference between problems and within a problem.
        alpha: two-sided level.
        power: chance of finding the difference.
        hidden: how much a problem can change the other way (skewed_changes).
    """
    reach = float(stats.t.ppf(power, n - 1))
    factor, least = float(stats.t.ppf(1 - alpha / 2, n - 1)) + reach, math.sqrt(parts.between / n)

    def smallest(error: float) -> float:
        return max(factor * error, skewed_changes.needed_mean(n, hidden, error, alpha) + reach * error)

    largest = difference / factor
    if (parts.between + parts.within) / n > largest**2:  # else one repeat does, whose test has no such limit
        errors = np.linspace(largest, least, 60)
        largest = next((float(error) for error in errors if smallest(error) <= difference), 0.0)
    room = n * largest**2 - parts.between
    repeats = max(1, math.ceil(parts.within / room - 1e-9)) if room > 0 else None
    normal = float(stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power))
    problems = math.ceil((parts.between + parts.within) * (normal / difference) ** 2)
    limit = min(smallest(least), factor * math.sqrt((parts.between + parts.within) / n))
    return Needed(repeats, limit, problems)


def t_quantile(n: int, confidence: float = 0.95) -> float:
    """Half-width in standard errors of Student's interval over n problems."""
    return float(stats.t.ppf((1 + confidence) / 2, n - 1)) if n > 1 else math.inf
