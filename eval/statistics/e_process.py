"""Evidence about a paired difference that may be looked at after every round of sampling.

In round r each problem has k_r completions of both models, and D is the difference of their accuracies on it. Two bets
on the problems have an expectation of at most 1 where there is nothing to find, so they are e-values:

- `symmetric`: product over problems of 2 / (1 + exp(-2 l D)). If the models are exchangeable on each problem, as the
  gate's permutation test supposes too, D has either sign with chance 1/2 whatever its size, and the two values average
  to 1. So l may depend on the sizes: it is c over the root of the sum of D squared, averaged over c. A loss beyond a
  margin is tested in the same way, with D shifted by the margin.
- `bounded`: product over problems of 1 + l ((1 + D) / (1 + m) - 1), averaged over l. For D with a mean of at most m
  over problems like these, whatever its distribution (Waudby-Smith and Ramdas 2024, "Estimating means of bounded
  random variables by betting", JRSS B 86:1, arXiv:2010.09686). Intervals and "loss excluded" rest on it.

Rounds share problems and completions, so their bets are not multiplied: of R planned rounds, each gets 1/R of the
stake. What the rounds so far have won is an e-process: it never falls, and in the end it is an average of e-values. The
chance that it ever reaches 1/a is therefore at most a (Markov), whenever one looks and stops, with any number of
problems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from eval.statistics import Estimate, skewed_changes

Floats = npt.NDArray[np.float64]
SCALES = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0])  # c above; the best one is the sum of D over its root square
BETS = np.array([1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 0.9])  # l of bounded; the best is near mean / variance
LARGEST = 700.0  # logarithm; more does not fit a float


def symmetric(differences: Floats, *, above: bool) -> float:
    """Logarithm of the e-value that the models are not exchangeable and the second is better (or worse).

    Args:
        differences: one per problem, from -1 to 1, of shape (problems,).
        above: whether the second is better.
    """
    size = math.sqrt(float((differences**2).sum()))
    if size == 0:
        return 0.0
    signed = differences if above else -differences
    bets = (math.log(2) - np.logaddexp(0, -2 * np.outer(SCALES / size, signed))).sum(axis=1)
    return float(special.logsumexp(bets) - math.log(len(SCALES)))


def bounded(differences: Floats, mean: float, *, above: bool) -> float:
    """Logarithm of the e-value that the mean difference is above (or below) `mean`.

    Args:
        differences: one per problem, from -1 to 1, of shape (problems,).
        mean: of the hypothesis that is tested, between -1 and 1 (both excluded).
        above: against means up to `mean`; otherwise against means from `mean` on.
    """
    side = 1.0 if above else -1.0
    gains = (1 + side * differences) / (1 + side * mean) - 1
    return float(special.logsumexp(np.log1p(np.outer(BETS, gains)).sum(axis=1)) - math.log(len(BETS)))


def over_rounds(won: Sequence[float], planned: int) -> float:
    """Logarithm of the e-process after some of the planned rounds, from those of their e-values."""
    return float(special.logsumexp(won) - math.log(planned))


def p_value(
    least: Sequence[Floats], most: Sequence[Floats], planned: int, margin: float = 0.0, baseline: float = 0.5
) -> float:
    """Two-sided and always valid: without a gain or a loss over `margin`, it is ever at most p with chance p or less.

    The side is that of the observed difference.

    Args:
        least: per round, the differences of the problems, ungradable answers counted against a gain.
        most: likewise against a loss.
        planned: rounds.
        margin: a loss up to this fraction is none.
        baseline: its accuracy, which limits how much problems of which there is none here can change.
    """
    gained = float(least[-1].mean() + most[-1].mean()) > 0
    null = 0.0 if gained else -margin
    won = [symmetric(one - null, above=gained) for one in (least if gained else most)]
    last = (least if gained else most)[-1]
    gap = (float(last.mean()) - null) * (1 if gained else -1)
    if gap <= 0:
        return 1.0
    hidden = skewed_changes.headroom([np.full(len(last), baseline)], gained) - null
    unseen = 0.0
    if null or not np.isin(last, (-1, 0, 1)).all():
        unseen = float(skewed_changes.chance_of_none(np.array([gap]), len(last), hidden, np.zeros(1))[0])
    return min(1.0, max(2 * math.exp(-min(over_rounds(won, planned), LARGEST)), unseen))


def interval(rounds: Sequence[Floats], planned: int, alpha: float = 0.05) -> Estimate:
    """The mean difference of the last round, and the means that no round has excluded at this level so far.

    Args:
        rounds: per round, one difference per problem, of shape (problems,); one round or more.
        planned: rounds.
        alpha: chance that a true mean is ever outside.
    """
    value, needed = float(rounds[-1].mean()), math.log(2 / alpha)
    edge = 1 - 1e-9

    def limit(above: bool) -> float:
        def excess(mean: float) -> float:
            return over_rounds([bounded(one, mean, above=above) for one in rounds], planned) - needed

        far = -edge if above else edge
        if excess(far) <= 0:  # nothing is excluded on this side
            return math.copysign(1.0, far)
        return float(optimize.brentq(excess, *sorted((far, -far)), xtol=1e-6))

    return Estimate(value, limit(True), limit(False))


def rounds_up_to(most: int) -> list[int]:
    """Completions per problem after each round: doubled each time, up to the most."""
    return [*(2**power for power in range(most.bit_length()) if 2**power < most), most]
