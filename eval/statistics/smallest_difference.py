"""The smallest true difference that the paired permutation test would have found on these problems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from eval.statistics import skewed_changes
from eval.statistics.significance import ALPHA, POWER, mcnemar_power

DATASETS = 400  # simulated to get the power: good to 2 % at 80 %
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Pair = tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]


def smallest_detectable(
    parts: Sequence[Pair], alpha: float = ALPHA, power: float = POWER, margin: float = 0.0
) -> float | None:
    """The smallest true difference that the test would have found with this power; None if it would have found none.

    The difference is a gain, the same on every benchmark: each wrong answer of one side turns right with the same
    probability. (Where more than half of the answers are right, it is a loss: each right one turns wrong.) This adds
    disagreement to that of the samples, so the power is less than with the observed spread alone. Problems
    like these, of which none is here, may change as after a gain or a loss, whichever hides more (skewed_changes).

    Args:
        parts: per benchmark, the correct answers of both sides, each of shape (problems, repeats). The observed
            difference is taken out. With several benchmarks the test is that of their mean.
        alpha: two-sided level.
        power: chance of finding the difference.
        margin: the difference is a loss that is tested against this one.
    """
    firsts = [first for first, _ in parts]
    hidden = max(skewed_changes.headroom(firsts, gained) for gained in ((False,) if margin else (False, True)))
    if np.mean([first.mean() + second.mean() for first, second in parts]) > 1:
        parts = [(~first, ~second) for first, second in parts]
    room = float(min(1 - min(first.mean(), second.mean()) for first, second in parts))
    if room <= 0 or min(len(first) for first, _ in parts) < 2:
        return None
    single = all(first.shape[1] == 1 for first, _ in parts)
    if len(parts) == 1 and single and not margin:
        first, second = parts[0]
        discordant = float(np.mean(first != second)) - abs(float(second.mean() - first.mean()))

        def power_at(difference: float) -> float:
            return mcnemar_power(len(first), discordant + difference * (1 - discordant / room), difference, alpha)

    else:
        simulated = [_Simulated(*part, seed) for seed, part in enumerate(parts)]

        def power_at(difference: float) -> float:
            values = [part.differences(difference) / part.repeats - margin for part in simulated]
            p = _permutation(values, 1 / simulated[0].repeats if len(parts) == 1 and not margin else 0.0)
            if not single or margin:
                p = np.maximum(p, skewed_changes.bounds([-margin - part for part in values], hidden, -margin).p_values)
            return float(np.mean((p <= alpha) & (sum(part.mean(axis=1) for part in values) > 0)))

    if power_at(room) < power:
        return None
    return float(optimize.bisect(lambda difference: power_at(difference) - power, 0.0, room, xtol=5e-4))


class _Simulated:
    """Pairs of checkpoints without a true difference, drawn from the problems of one benchmark with replacement."""

    def __init__(self, first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_], seed: int) -> None:
        n, self.repeats = first.shape
        random = np.random.default_rng(seed)
        low, high = sorted((first, second), key=lambda side: int(side.sum()))
        # Repeats that are copies, as greedy ones are, turn right together.
        self.copies = self.repeats if bool((high == high[:, :1]).all()) else 1
        low, high = low.sum(axis=1), high.sum(axis=1) // self.copies
        rows = random.integers(0, n, (DATASETS, n))
        # The side with more right answers loses some at random, so that no difference is left.
        self.low: Counts = low[rows]
        self.high: Counts = random.binomial(high[rows], low.sum() / max(1, self.copies * high.sum()))
        self.room, self.seed = 1 - float(low.mean()) / self.repeats, seed + 1

    def differences(self, gain: float) -> Counts:
        """Differences in right answers per data set and problem after a gain on average of this fraction."""
        random = np.random.default_rng(self.seed)  # the same numbers for every gain
        gained = random.binomial(self.repeats // self.copies - self.high, min(1.0, gain / self.room))
        return np.asarray(self.copies * (self.high + gained) - self.low, dtype=np.int64)


def _permutation(parts: Sequence[Floats], distance: float) -> Floats:
    """Two-sided p-values of many permutation tests of the mean over benchmarks, by an Edgeworth series.

    (`significance.permutation` is exact but takes one test at a time.) At least 2 / 2^m with m changed problems.

    Args:
        parts: per benchmark, differences of shape (tests, problems).
        distance: between possible values of a difference, if all are its multiples; else 0.
    """
    scaled = [part / part.shape[1] for part in parts]
    sums = np.abs(sum(part.sum(axis=1) for part in scaled))
    squares = np.maximum(sum((part**2).sum(axis=1) for part in scaled), 1e-30)
    excess = -2 * sum((part**4).sum(axis=1) for part in scaled) / squares**2
    z = np.maximum(sums - distance / parts[0].shape[1], 0) / np.sqrt(squares)  # half of the distance between sums
    tail = stats.norm.sf(z) + stats.norm.pdf(z) * excess / 24 * (z**3 - 3 * z)
    smallest = 2.0 ** (1 - np.sum([np.count_nonzero(part, axis=1) for part in parts], axis=0))
    return np.asarray(np.clip(2 * tail, smallest, 1.0), dtype=np.float64)
