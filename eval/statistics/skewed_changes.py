"""Whether a mean change could be due to a few problems that change much, the other way than most.

The permutation test supposes that a problem's difference is as likely to be positive as negative. Where most problems
gain a little and few lose much, with a mean of zero, it calls the many small gains a gain. Two bounds of the p-value
do not suppose it; a verdict needs all three:

- Empirical likelihood (Owen 1988, "Empirical likelihood ratio confidence intervals for a single functional", Biometrika
  75:237): how far the weights of the problems have to be moved until their mean change is none, with Student's
  quantiles in place of the normal ones (Owen 2001, "Empirical Likelihood", section 3.3), for few problems. A problem
  that changes by HIDDEN the other way may be given weight, too, though none of these does.
- If such problems exist in just the share that makes the mean zero, the chance that none is among these.

So "at most 5 %" holds for changes of up to HIDDEN. Rare larger ones, none of them among few problems, no test of the
mean excludes that finds small differences. Error rates: studies/gate_validation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]
HIDDEN = 0.5  # change, the other way, of a problem like these of which there is none among them
STEPS = 90  # of Newton's method and bisection, of which a third halve the interval


def p_values(parts: Sequence[Floats], null: float = 0.0) -> Floats:
    """Two-sided p-values of many tests that the mean of the benchmarks' mean differences is `null`, of shape (tests,).

    Args:
        parts: per benchmark, differences from -1 to 1, of shape (tests, problems).
        null: a mean difference.
    """
    fewest = min(part.shape[1] for part in parts)
    shifted = [part - null for part in parts]
    sums = np.asarray(sum(part.mean(axis=1) for part in shifted))
    side = np.where(sums < 0, -1.0, 1.0)[:, None]
    values = np.concatenate([side * part / part.shape[1] for part in shifted], axis=1)
    ratios = _likelihood_ratios(values, (HIDDEN + abs(null)) / fewest)
    likelihood = 2 * stats.t.sf(np.sqrt(ratios), _degrees_of_freedom(shifted))
    return np.asarray(np.maximum(likelihood, _chance_of_none(np.abs(sums), fewest, null)), dtype=np.float64)


def chance_of_none(parts: Sequence[Floats], null: float = 0.0) -> float:
    """The second bound alone, for one difference per problem.

    Args:
        parts: per benchmark, differences from -1 to 1, of shape (problems,).
        null: a mean difference.
    """
    gap = abs(sum(float(part.mean()) - null for part in parts))
    return float(_chance_of_none(np.array([gap]), min(map(len, parts)), null)[0])


def needed_mean(problems: int, alpha: float) -> float:
    """The mean difference from which on the second bound is at most alpha."""
    return float(HIDDEN * (alpha ** (-1 / problems) - 1))


def _chance_of_none(gaps: Floats, problems: int, null: float) -> Floats:
    """A share q of hidden changes h makes the mean zero if q h = (1 - q) gap; none is drawn with chance (1 - q)^n."""
    return np.asarray((1 + gaps / (HIDDEN + abs(null))) ** -problems, dtype=np.float64)


def _likelihood_ratios(values: Floats, hidden: float) -> Floats:
    """-2 log of the empirical likelihood ratio that a positive mean is zero, of shape (tests,).

    Its dual: twice the largest sum of log(1 + l value) over l up to 1 / hidden (Owen 2001, section 2.9).

    Args:
        values: of shape (tests, problems), with a mean of zero or more.
        hidden: the lowest possible value, negated, if all values are above it.
    """
    low = np.zeros(len(values))
    high = (1 - 1e-9) / np.maximum(hidden, -values.min(axis=1))
    bet = np.minimum(values.sum(axis=1) / np.maximum((values**2).sum(axis=1), 1e-300), high / 2)
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
    return np.asarray(np.maximum(2 * np.log1p(bet[:, None] * values).sum(axis=1), 0.0), dtype=np.float64)


def _degrees_of_freedom(parts: Sequence[Floats]) -> Floats:
    """Satterthwaite's, of the mean over benchmarks; problems less one where there is one benchmark."""
    pieces = [(part.var(axis=1) / part.shape[1] + 1e-300, part.shape[1] - 1) for part in parts]
    total = np.asarray(sum(piece for piece, _ in pieces))
    return np.asarray(1 / sum((piece / total) ** 2 / df for piece, df in pieces), dtype=np.float64)
