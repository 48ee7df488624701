"""Gain against reward error: the fitted slopes, and the error up to which 90 % of the exact reward's gain are kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize

from analysis.statistics import recipe_difference
from eval.statistics import Estimate

Floats = npt.NDArray[np.float64]
Gains = Sequence[Floats]  # per benchmark, of shape (seeds, problems): the same trainings in each
KEPT = 0.9  # of the exact reward's gain: a reward that keeps so much counts as good enough
SAME = 1e-9  # an error that varies by less between settings does not vary


class Fit(NamedTuple):
    """A line through the mean gains of settings.

    Attributes:
        slopes: per error that varies, gain per 1 of error, with its interval for new seeds and new problems.
        intercept: the gain without error.
        explained: share of the spread of the settings' mean gains.
        settings: how many.
        leverage: the largest of a setting, from 0 to 1: at 1 the line goes through its point whatever the others say.
        hangs_on: the position of that setting.
        ratio: of the first slope over the second, if there are two, with its interval (Fieller 1954).
    """

    slopes: dict[str, Estimate]
    intercept: float
    explained: float
    settings: int
    leverage: float
    hangs_on: int
    ratio: Estimate | None


def fit(gains: Sequence[Gains], errors: dict[str, Floats]) -> Fit | None:
    """Least squares of the gain over one or several errors.

    A slope is a sum of the settings' gains with fixed weights, the rows of the pseudo-inverse of (1, errors). So its
    interval is that of such a sum over the seeds, which all settings share, and over the problems
    (`mean_over_seeds`): it is for new seeds and new problems with these settings, and the law is taken to be a line.

    Args:
        gains: of each setting.
        errors: by name, of shape (settings,); those that do not vary are left out.

    Returns:
        None if no error varies, they cannot be told apart, or there are not more settings than numbers to fit.
    """
    varied = {name: values for name, values in errors.items() if np.ptp(values) > SAME}
    design = np.column_stack([np.ones(len(gains)), *varied.values()])
    if not varied or len(gains) <= design.shape[1] or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    weights = np.linalg.pinv(design)
    means = np.array([mean_of(own) for own in gains])
    slopes = {
        name: recipe_difference.mean_over_seeds(combined(gains, row), limit=math.inf)
        for name, row in zip(varied, weights[1:], strict=True)
    }
    rest, spread = means - design @ (weights @ means), means - means.mean()
    explained = 1 - float((rest**2).sum() / (spread**2).sum()) if np.ptp(means) > SAME else math.nan
    leverages = np.einsum("ij,ji->i", design, weights)
    hangs_on = int(leverages.argmax())
    ratio = _ratio(gains, weights[1], weights[2]) if len(slopes) == 2 else None
    return Fit(
        slopes, float(weights[0] @ means), explained, len(gains), float(leverages[hangs_on]), hangs_on, ratio
    )  # fmt: skip


def _ratio(gains: Sequence[Gains], above: Floats, below: Floats) -> Estimate:
    """The quotient of two sums of gains: all c for which the interval of `above` - c × `below` has 0 (Fieller 1954).

    Without limits where the interval of `below` has 0.
    """
    both = [combined(gains, weights) for weights in (above, below)]
    value = mean_of(both[0]) / mean_of(both[1])
    bottom = recipe_difference.mean_over_seeds(both[1], limit=math.inf)
    if bottom.low <= 0 <= bottom.high:
        return Estimate(value, -math.inf, math.inf)

    def misses(factor: float) -> float:
        """Below 0 where the interval has 0: squared distance of the value less squared half-width."""
        parts = [one - factor * two for one, two in zip(*both, strict=True)]
        gap = recipe_difference.mean_over_seeds(parts, limit=math.inf)
        return gap.value**2 - (gap.high - gap.value) ** 2

    if misses(value) >= 0:  # without any noise
        return Estimate(value, value, value)
    step = abs(value) + 1.0
    while misses(value - step) < 0 or misses(value + step) < 0:
        step *= 2
    low, high = (float(optimize.brentq(misses, value, value + side * step)) for side in (-1, 1))
    return Estimate(value, low, high)


def combined(gains: Sequence[Gains], weights: Sequence[float] | Floats) -> list[Floats]:
    """The weighted sum of settings' gains, per benchmark of shape (seeds, problems)."""
    return [
        np.asarray(sum(weight * part for weight, part in zip(weights, parts, strict=True)))
        for parts in zip(*gains, strict=True)
    ]


def mean_of(gains: Gains) -> float:
    """The mean gain over benchmarks."""
    return float(np.mean([part.mean() for part in gains]))


class Knee(NamedTuple):
    """The error up to which KEPT of the exact reward's gain are seen to be kept. More exactness may still add the rest.

    Attributes:
        enough: position of the least exact setting that keeps enough of the gain, and so do all more exact ones; None
            if no setting with an error does.
        all_kept: every setting does, so that the point lies beyond the largest error that was tried.
    """

    enough: int | None
    all_kept: bool


def knee(exact: Gains, gains: Sequence[Gains], errors: Sequence[float]) -> Knee | None:
    """The error up to which KEPT of the exact reward's gain are seen to be kept, if any.

    From the smallest error on, each setting is tested for keeping KEPT of the exact reward's gain: the interval of
    KEPT times that gain less its own has to end below 0. The first that is not seen to keep it ends the search: in a
    fixed order no correction for the number of tests is needed (Maurer, Hothorn and Lehmacher 1995).

    Args:
        exact: the gains with the exact reward.
        gains: of each setting with an error.
        errors: of these, by which they are ordered.

    Returns:
        None if the exact reward is not seen to train anything, so that nothing can be kept, or without settings.
    """
    if not gains or recipe_difference.mean_over_seeds(exact).low <= 0:
        return None
    enough: int | None = None
    for index in np.argsort(errors, kind="stable"):
        if recipe_difference.mean_over_seeds(combined([exact, gains[index]], [KEPT, -1.0])).high >= 0:
            return Knee(enough, False)
        enough = int(index)
    return Knee(enough, True)
