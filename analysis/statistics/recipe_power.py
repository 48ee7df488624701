"""The power of the recipes' test: all of its parts have to find a difference, two with a variance of few seeds.

The estimated variances are drawn (chi-squared), and the share of draws with a verdict is the power. A formula with one
noncentral t distribution is too high where few seeds are, because the tests disagree there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from eval.statistics import significance

Floats = npt.NDArray[np.float64]
DRAWS = 1000  # the power is good to 2 % at 80 %


def penalty(seeds: int) -> int:
    """By what p-values are multiplied: the spread of two seeds says little, and both tests are wrong with it.

    Args:
        seeds: of the side with fewer. False verdicts with two: studies/gate_validation.
    """
    return 3 if seeds == 2 else 1


class Noise(NamedTuple):
    """What hides a difference of two recipes.

    Attributes:
        seeds: trainings of both sides; of pairs of trainings with one seed, their number alone.
        seed: variance of a training's mean accuracy, or of the difference in a pair.
        problems: variance that the choice of problems gives the difference.
        problem_df: degrees of freedom of its estimate.
        these_seeds: variance of the difference over new problems for these seeds, by a test that has to find it too.
        estimated: whether both variances are estimates by these seeds and problems. The true ones may be larger, with
            two seeds much, and the power is the mean over what they may be: over many comparisons it is kept.
    """

    seeds: tuple[int, ...]
    seed: float
    problems: float
    problem_df: float
    these_seeds: float = 0.0
    estimated: bool = False


def _ratios(df: float, number: int) -> Floats:
    """Draws of an estimated variance over the true one."""
    return np.asarray(np.random.default_rng(number).chisquare(df, DRAWS) / df, dtype=np.float64)


def _draws(noise: Noise, alpha: float) -> tuple[Floats, Floats]:
    """The observed differences from which on all tests find one, and the deviations of observed differences."""
    over_seeds_alpha = alpha / penalty(min(noise.seeds))
    df, share = float(sum(noise.seeds) - len(noise.seeds)), sum(1 / count for count in noise.seeds)
    true_seed, true_problems = np.full(DRAWS, noise.seed), np.full(DRAWS, noise.problems)
    if noise.estimated:
        true_seed, true_problems = true_seed / _ratios(df, 0), true_problems / _ratios(noise.problem_df, 1)
    drawn = [true_seed * _ratios(count - 1, side) for side, count in enumerate(noise.seeds, start=3)]
    over_problems = _ratios(noise.problem_df, 2)
    problems, these_seeds = true_problems * over_problems, noise.these_seeds * over_problems
    pooled = sum((count - 1) * one for count, one in zip(noise.seeds, drawn, strict=True)) / df
    welch = [(one / count, count - 1.0) for count, one in zip(noise.seeds, drawn, strict=True)]
    edges = [stats.t.ppf(1 - alpha / 2, noise.problem_df) * np.sqrt(these_seeds)]
    for seeds in (welch, [(pooled * share, df)]):
        pieces = [*seeds, (problems, noise.problem_df)]
        variance = np.maximum(sum(piece for piece, _ in pieces), 1e-30)
        freedom = variance**2 / np.maximum(sum(piece**2 / own for piece, own in pieces), 1e-60)
        edges.append(stats.t.ppf(1 - over_seeds_alpha / 2, freedom) * np.sqrt(variance))
    return np.max(edges, axis=0), np.sqrt(true_seed * share + true_problems)


def _share_found(draws: tuple[Floats, Floats], gap: float) -> float:
    return float(stats.norm.cdf((gap - draws[0]) / np.maximum(draws[1], 1e-12)).mean())


def power(noise: Noise, gap: float, alpha: float) -> float:
    """The chance that a true difference is found, in its direction.

    Args:
        noise: of the comparison.
        gap: the true difference, a fraction.
        alpha: two-sided level.
    """
    return _share_found(_draws(noise, alpha), abs(gap))


def detectable(noise: Noise, alpha: float, wanted: float = significance.POWER) -> float:
    """The true difference that is found with this power.

    Args:
        noise: of the comparison.
        alpha: two-sided level of the line.
        wanted: chance of finding it.
    """
    draws = _draws(noise, alpha)
    most = float(draws[0].max() + 10 * draws[1].max())
    return float(optimize.brentq(lambda gap: _share_found(draws, gap) - wanted, 0.0, most, rtol=1e-4)) if most else 0.0
