"""Two models on these very problems: only the completions are random, no other problems are meant.

If both models solve each problem with one chance, the right answers to it are dealt to the sides at random, whatever
the chance is. So given how many of a problem's answers are right, those of one side are hypergeometric, independently
by problem: the exact conditional test of stratified tables (Mehta, Patel and Gray 1985, Journal of the American
Statistical Association 80:969). With one completion a side it is McNemar's. Where chances differ but cancel out over
the problems, it is cautious, as the dealt answers vary more than the sampled ones do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import fft, stats

from eval.statistics.accuracy import Correct, Estimate
from eval.statistics.significance import ALPHA, DRAWS, POWER

Floats = npt.NDArray[np.float64]
Pair = tuple[Correct, Correct]


def _chances(pair: Pair) -> Floats:
    """Of the number of right answers of the first side, from 0 to problems × repeats, if they are dealt at random."""
    n, k = pair[0].shape
    totals, times = np.unique(pair[0].sum(axis=1) + pair[1].sum(axis=1), return_counts=True)
    size = fft.next_fast_len(n * k + 1, real=True)
    product = np.ones(size // 2 + 1, dtype=complex)
    for total, number in zip(totals, times, strict=True):
        product *= fft.rfft(stats.hypergeom.pmf(np.arange(k + 1), 2 * k, total, k), size) ** number
    return np.asarray(np.clip(fft.irfft(product, size)[: n * k + 1], 0, None), dtype=np.float64)


def _variance(pair: Pair) -> float:
    """Of the difference of both accuracies: the larger of the dealt and the sampled, and two completions more."""
    n, k = pair[0].shape
    totals = pair[0].sum(axis=1) + pair[1].sum(axis=1)
    dealt = float((totals * (2 * k - totals)).sum()) / (2 * k - 1) / (n * k) ** 2
    sampled = sum(float(side.var(axis=1, ddof=1).sum()) for side in pair) / n**2 / k if k > 1 else 0.0
    return float(max(dealt, sampled) + 2 / (n * k) ** 2)


def difference(pair: Pair, confidence: float = 0.95) -> Estimate:
    """How much more accurate the second side is, with an interval for other completions of the same problems.

    Args:
        pair: right answers of both sides, each of shape (problems, repeats).
        confidence: of the interval.
    """
    gap = float(pair[1].mean() - pair[0].mean())
    half = float(stats.norm.ppf((1 + confidence) / 2)) * math.sqrt(_variance(pair))
    return Estimate(gap, max(-1.0, gap - half), min(1.0, gap + half))


def p_value(pairs: Sequence[Pair], gained: bool, margin: float = 0.0, weights: Sequence[float] | None = None) -> float:
    """Two-sided p-value of no difference; of the mean over several benchmarks by random draws.

    Args:
        pairs: per benchmark, right answers of both sides, each of shape (problems, repeats).
        gained: the direction; a difference in the other one has p = 1.
        margin: a loss up to this fraction is none. A loss beyond it is tested by the normal distribution.
        weights: of the benchmarks in the mean; by default all the same.
    """
    shares = np.full(len(pairs), 1 / len(pairs)) if weights is None else np.asarray(weights) / np.sum(weights)
    gap = float(sum(share * (pair[1].mean() - pair[0].mean()) for share, pair in zip(shares, pairs, strict=True)))
    if gap <= 0 if gained else gap >= -margin:
        return 1.0
    if not gained and margin:
        error = math.sqrt(sum(share**2 * _variance(pair) for share, pair in zip(shares, pairs, strict=True)))
        return float(2 * stats.norm.sf((-margin - gap) / error))
    if len(pairs) == 1:
        first, chances = int(pairs[0][0].sum()), _chances(pairs[0])
        tail = chances[first:] if gap < 0 else chances[: first + 1]
        return float(min(1.0, 2 * tail.sum()))
    random, total = np.random.default_rng(0), np.zeros(DRAWS)
    for share, (one, two) in zip(shares, pairs, strict=True):
        edges = np.cumsum(_chances((one, two)))
        drawn = np.searchsorted(edges / edges[-1], random.random(DRAWS))
        total += share * (int(one.sum() + two.sum()) - 2 * drawn) / one.size
    return float((1 + np.count_nonzero(np.abs(total) >= abs(gap) - 1e-12)) / (1 + DRAWS))


def smallest_detectable(pairs: Sequence[Pair], alpha: float = ALPHA, power: float = POWER) -> float:
    """The true difference that is found with this power, by the normal distribution; of the mean of several.

    Args:
        pairs: as in `p_value`.
        alpha: two-sided level.
        power: chance of finding it.
    """
    error = math.sqrt(sum(_variance(pair) for pair in pairs)) / len(pairs)
    return float(stats.norm.isf(alpha / 2) + stats.norm.ppf(power)) * error
