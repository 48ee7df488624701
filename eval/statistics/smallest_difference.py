"""The smallest true difference that the paired permutation test would have found on these problems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from eval.statistics.significance import ALPHA, POWER, mcnemar_power

DATASETS = 400  # simulated to get the power: good to 2 % at 80 %
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Pair = tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]


def smallest_detectable(parts: Sequence[Pair], alpha: float = ALPHA, power: float = POWER) -> float | None:
    """The smallest true difference that the test would have found with this power; None if it would have found none.

    The difference is a gain, the same on every benchmark: each wrong answer of one side turns right with the same
    probability. (Where more than half of the answers are right, it is a loss: each right one turns wrong.) This adds
    disagreement to that of the samples, so the power is less than with the observed spread alone.

    Args:
        parts: per benchmark, the correct answers of both sides, each of shape (problems, repeats). The observed
            difference is taken out. With several benchmarks the test is that of their mean.
        alpha: two-sided level.
        power: chance of finding the difference.
    """
    if np.mean([first.mean() + second.mean() for first, second in parts]) > 1:
        parts = [(~first, ~second) for first, second in parts]
    room = float(min(1 - min(first.mean(), second.mean()) for first, second in parts))
    if room <= 0 or min(len(first) for first, _ in parts) < 2:
        return None
    if len(parts) == 1 and parts[0][0].shape[1] == 1:
        first, second = parts[0]
        discordant = float(np.mean(first != second)) - abs(float(second.mean() - first.mean()))

        def power_at(difference: float) -> float:
            return mcnemar_power(len(first), discordant + difference * (1 - discordant / room), difference, alpha)

    else:
        simulated = [_Simulated(*part, seed) for seed, part in enumerate(parts)]
        scales = [1.0] if len(parts) == 1 else [1 / first.size for first, _ in parts]

        def power_at(difference: float) -> float:
            return float(np.mean(_permutation([part.differences(difference) for part in simulated], scales) <= alpha))

    if power_at(room) < power:
        return None
    return float(optimize.bisect(lambda difference: power_at(difference) - power, 0.0, room, xtol=5e-4))


class _Simulated:
    """Pairs of checkpoints without a true difference, drawn from the problems of one benchmark with replacement."""

    def __init__(self, first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_], seed: int) -> None:
        n, self.repeats = first.shape
        random = np.random.default_rng(seed)
        low, high = sorted((first.sum(axis=1), second.sum(axis=1)), key=lambda counts: int(counts.sum()))
        rows = random.integers(0, n, (DATASETS, n))
        # The side with more right answers loses some at random, so that no difference is left.
        self.low: Counts = low[rows]
        self.high: Counts = random.binomial(high[rows], low.sum() / max(1, high.sum()))
        self.room, self.seed = 1 - float(low.mean()) / self.repeats, seed + 1

    def differences(self, gain: float) -> Counts:
        """Differences in right answers per data set and problem after a gain on average of this fraction."""
        random = np.random.default_rng(self.seed)  # the same numbers for every gain
        gained = random.binomial(self.repeats - self.high, min(1.0, gain / self.room))
        return np.asarray(self.high + gained - self.low, dtype=np.int64)


def _permutation(parts: Sequence[Counts], scales: Sequence[float]) -> Floats:
    """Two-sided p-values of many permutation tests of the mean over benchmarks, by an Edgeworth series.

    (`significance.permutation` is exact but takes one test at a time.) At least 2 / 2^m with m changed problems.

    Args:
        parts: per benchmark, differences as whole numbers of shape (tests, problems).
        scales: what they are multiplied by before they are added. 1 for a single benchmark.
    """
    scaled = [part * scale for part, scale in zip(parts, scales, strict=True)]
    sums = np.abs(sum(part.sum(axis=1) for part in scaled))
    squares = np.maximum(sum((part**2).sum(axis=1) for part in scaled), 1e-12)
    excess = -2 * sum((part**4).sum(axis=1) for part in scaled) / squares**2
    gap = 1.0 if len(parts) == 1 else 0.0  # half of the distance between sums of whole numbers
    z = np.maximum(sums - gap, 0) / np.sqrt(squares)
    tail = stats.norm.sf(z) + stats.norm.pdf(z) * excess / 24 * (z**3 - 3 * z)
    smallest = 2.0 ** (1 - np.sum([np.count_nonzero(part, axis=1) for part in parts], axis=0))
    return np.asarray(np.clip(2 * tail, smallest, 1.0), dtype=np.float64)
