"""Whether a mean change could be due to a few problems that change much, the other way than most.

The permutation test supposes that a problem's difference is as likely to be positive as negative. Where most problems
gain a little and few lose much, with a mean of zero, it calls the many small gains a gain. Two bounds of the p-value
do not suppose it; a verdict needs all three:

- Empirical likelihood (Owen 1988, "Empirical likelihood ratio confidence intervals for a single functional", Biometrika
  75:237): how far the weights of the problems have to be moved until their mean change is none, with Student's
  quantiles in place of the normal ones (Owen 2001, "Empirical Likelihood", section 3.3), for few problems.
- The chance that none of the problems that change the other way is among these, and that the mean of the others is at
  least the observed one, at the share of such problems that makes the mean zero and this chance largest. It may take
  OF_LEVEL of the level; the rest is for draws with some of them.

How much such problems change (`headroom`) is what the data leave room for: after a gain they lose what the baseline
had, after a loss they gain the rest, MOST at the most. So gains are found more easily where the baseline is low, losses
where it is high. That is the condition of "at most 5 %": rare larger changes, none of them among few problems, no test
of the mean excludes that finds small differences. Other tests, and error rates: studies/gate_validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

Floats = npt.NDArray[np.float64]
MOST = 0.65  # change of a problem like these of which there is none here, as a fraction
OF_LEVEL = 0.8  # of the level, for draws with none of the problems that change the other way
STEPS = 90  # of Newton's method and bisection, of which a third halve the interval
_GRID = np.linspace(-4, 4, 49)  # standard errors from the observed mean


def headroom(baselines: Sequence[npt.NDArray[Any]], gained: bool) -> float:
    """How much a problem of the smallest benchmark can change the other way, on average, as a fraction.

    Args:
        baselines: per benchmark, right answers of the baseline, or its accuracies, by problem.
        gained: whether the checkpoint gained.
    """
    fewest = min(map(len, baselines))
    levels = [float(side.mean() if gained else 1 - side.mean()) for side in baselines if len(side) == fewest]
    return min(MOST, max(1 / fewest, *levels))


class Bounds(NamedTuple):
    """Of p-values, each of shape (tests,): by empirical likelihood, and by the chance that none is here."""

    likelihood: Floats
    none: Floats

    @property
    def p_values(self) -> Floats:
        """The larger of both."""
        return np.asarray(np.maximum(self.likelihood, self.none), dtype=np.float64)


def bounds(parts: Sequence[Floats], hidden: float, null: float = 0.0) -> Bounds:
    """Of two-sided p-values of many tests that the mean of the benchmarks' mean differences is `null`.

    Args:
        parts: per benchmark, differences from -1 to 1, of shape (tests, problems).
        hidden: how much a problem can change the other way (`headroom`).
        null: a mean difference.
    """
    shifted = [part - null for part in parts]
    sums = np.asarray(sum(part.mean(axis=1) for part in shifted))
    side = np.where(sums < 0, -1.0, 1.0)[:, None]
    values = np.concatenate([side * part / part.shape[1] for part in shifted], axis=1)
    likelihood = 2 * stats.t.sf(np.sqrt(_likelihood_ratios(values)), _degrees_of_freedom(shifted))
    errors = np.sqrt(np.asarray(sum(part.var(axis=1, ddof=1) / part.shape[1] for part in shifted)))
    none = chance_of_none(np.abs(sums), min(part.shape[1] for part in parts), hidden + abs(null), errors)
    return Bounds(np.asarray(likelihood, dtype=np.float64), none)


def chance_of_none(gaps: Floats, problems: int, hidden: float, errors: Floats) -> Floats:
    """The second bound alone, of shape (tests,).

    A share q of problems that change by h makes the mean zero if q h = (1 - q) g with a mean change g of the others;
    none is drawn with chance (1 - q)^n = (1 + g / h)^-n, and the others' mean is at least the observed one with the
    normal distribution's chance.

    Args:
        gaps: observed mean differences less that of the null hypothesis, without signs.
        problems: of the smallest benchmark.
        hidden: how much a problem can change the other way.
        errors: standard errors of the gaps; 0 where the samples are looked at again and again.
    """
    others = np.maximum(gaps[:, None] + np.maximum(errors, 1e-12)[:, None] * _GRID, 0)
    chances = (1 + others / hidden) ** -problems * special.ndtr(_GRID)
    return np.asarray(np.minimum(chances.max(axis=1) / OF_LEVEL, 1.0), dtype=np.float64)


def needed_mean(problems: int, hidden: float, error: float, alpha: float) -> float:
    """The observed mean difference from which on the second bound is at most alpha.

    Args:
        problems: of the benchmark.
        hidden: how much a problem can change the other way.
        error: standard error of the mean difference.
        alpha: two-sided level.
    """

    def excess(gap: float) -> float:
        return float(np.log(chance_of_none(np.array([gap]), problems, hidden, np.array([error]))[0] / alpha))

    most = hidden * ((OF_LEVEL * alpha) ** (-1 / problems) - 1) + 6 * error + 1e-9
    return float(optimize.brentq(excess, 0.0, most))


def _likelihood_ratios(values: Floats) -> Floats:
    """-2 log of the empirical likelihood ratio that a positive mean is zero, of shape (tests,).

    Its dual: twice the largest sum of log(1 + l value) over l (Owen 2001, section 2.9); infinite if no value is
    negative.

    Args:
        values: of shape (tests, problems), with a mean of zero or more.
    """
    low = np.zeros(len(values))
    lowest, sums = values.min(axis=1), values.sum(axis=1)
    high = np.where(lowest < 0, (1 - 1e-9) / np.maximum(-lowest, 1e-300), 0.0)
    bet = np.minimum(sums / np.maximum((values**2).sum(axis=1), 1e-300), high / 2)
    for step in range(STEPS):
        terms = values / (1 + bet[:, None] * values)
        slope, curvature = terms.sum(axis=1), (terms**2).sum(axis=1)
        low, high = np.where(slope > 0, bet, low), np.where(slope > 0, high, bet)
        if np.all((np.abs(slope) * bet <= 1e-8) | (high - low <= 1e-9 * high)):
            break
        newton = bet + slope / np.maximum(curvature, 1e-300)
        # Near the pole of the logarithm Newton's steps are tiny, so every third step halves the interval.
        use = (newton > low) & (newton < high) & (step % 3 != 2)
        bet = np.where(use, newton, (low + high) / 2)
    ratios = np.maximum(2 * np.log1p(bet[:, None] * values).sum(axis=1), 0.0)
    return np.asarray(np.where((lowest < 0) | (sums == 0), ratios, np.inf), dtype=np.float64)


def _degrees_of_freedom(parts: Sequence[Floats]) -> Floats:
    """Satterthwaite's, of the mean over benchmarks; problems less one where there is one benchmark."""
    pieces = [(part.var(axis=1) / part.shape[1] + 1e-300, part.shape[1] - 1) for part in parts]
    total = np.asarray(sum(piece for piece, _ in pieces))
    return np.asarray(1 / sum((piece / total) ** 2 / df for piece, df in pieces), dtype=np.float64)
