"""Accuracy over problems and repeats, with intervals that count a problem, not a completion, as one observation.

Arrays are `correct`, of shape (problems, repeats): whether each completion was right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from eval.statistics.clusters import Codes, linearised

Correct = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """A value and its confidence interval, as fractions."""

    value: float
    low: float
    high: float

    @property
    def change(self) -> str:
        """What a difference with this interval shows: rose, fell, or cannot tell."""
        if self.low > 0:
            return "rose"
        return "fell" if self.high < 0 else "cannot tell"


TIES = ("chance", "first")  # of answers with equally many votes: see `maj_by_problem`
RARE = 0.25  # problems' worth of answers at which the observed variance and its bound weigh the same
SPARSE = 0.5  # problems that differ at which an imagined one has half of its weight


def avg_at_k(correct: Correct, confidence: float = 0.95, clusters: Codes | None = None) -> Estimate:
    """Mean accuracy over all completions, with an interval clustered by problem (see `mean_over_problems`).

    Args:
        correct: of shape (problems, repeats).
        confidence: of the interval.
        clusters: of the problems, if they share any (eval.statistics.clusters).
    """
    return mean_over_problems(linearised(np.asarray(correct, dtype=float).mean(axis=1), clusters), confidence)


def mean_over_problems(means: Floats, confidence: float = 0.95) -> Estimate:
    """Mean of values from 0 to 1, one per problem, with an interval for problems like these.

    The variance is that of the values over the number of problems (Miller 2024, "Adding Error Bars to Evals",
    arXiv:2411.00640, section 2.2, for clusters of equal size). Because a symmetric interval fails near 0 and 1, and
    with 30 problems, it enters Wilson's score interval (Wilson 1927) through the effective sample size p(1-p)/variance,
    with Student's t at n-1 degrees of freedom (Korn and Graubard 1998; Franco et al. 2019, "Comparative study of
    confidence intervals for proportions in complex sample surveys"). Where few problems' worth of answers are right (or
    wrong), the observed variance says little, and is mixed with its bound p(1-p). With one problem the interval is
    [0, 1]. Simulated coverage: docs/explanation/comparisons.md.

    Args:
        means: of shape (problems,).
        confidence: of the interval.
    """
    n, p = len(means), float(means.mean())
    if n < 2:
        return Estimate(p, 0.0, 1.0)
    variance, rarer = float(means.var(ddof=1)) / n, min(p, 1 - p)
    weight = (1 - 2 * rarer) * RARE / (RARE + n * rarer)
    variance = (1 - weight) * variance + weight * max(variance, p * (1 - p) / n)
    return _wilson(p, variance, n, confidence)


def ratio(counts: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64], confidence: float = 0.95) -> Estimate:
    """A share over clusters of different sizes, such as one of the right answers to each problem.

    The variance is that of a ratio, linearised (Cochran 1977, Sampling Techniques, equation 6.13); the interval is that
    of `avg_at_k`, which this is for clusters of one size.

    Args:
        counts: of each cluster, what is counted.
        sizes: of each cluster, 1 or more.
        confidence: of the interval.
    """
    share = float(counts.sum() / sizes.sum())
    return mean_over_problems(share + (counts - share * sizes) / sizes.mean(), confidence)


def _wilson(p: float, variance: float, n: int, confidence: float) -> Estimate:
    """Wilson's interval with the effective size of n clusters whose share p has this variance."""
    size = p * (1 - p) / variance if variance > 0 and 0 < p < 1 else float(n)
    quantile = float(stats.t.ppf((1 + confidence) / 2, n - 1))
    weight = quantile**2 / size
    center = (p + weight / 2) / (1 + weight)
    half = quantile / (1 + weight) * float(np.sqrt(p * (1 - p) / size + weight / (4 * size)))
    return Estimate(p, max(0.0, center - half), min(1.0, center + half))


def pass_by_problem(correct: Correct, k: int) -> Floats:
    """Chance that one of k completions is right, per problem, of shape (problems,).

    The unbiased estimator 1 - C(n-c, k) / C(n, k) of Chen et al. 2021 (arXiv:2107.03374, equation 1) for n repeats of
    which c are right.
    """
    repeats = correct.shape[1]
    if not 1 <= k <= repeats:
        raise ValueError(f"pass@{k} needs from 1 to {repeats} completions per problem")
    # C(n-c, k) / C(n, k) = product over i in n-c+1 … n of (1 - k/i), which neither overflows nor cancels
    missed = [
        float(np.prod(1.0 - k / np.arange(repeats - c + 1, repeats + 1))) if repeats - c >= k else 0.0
        for c in range(repeats + 1)
    ]
    return np.asarray(1.0 - np.array(missed)[np.asarray(correct).sum(axis=1)], dtype=np.float64)


def maj_by_problem(answers: Sequence[Sequence[str | None]], correct: Correct, ties: str = "chance") -> Floats:
    """Whether the most frequent answer is right (majority vote, Wang et al. 2023, arXiv:2203.11171), per problem.

    Args:
        answers: per problem, the (normalised) answers of its repeats; None does not vote.
        correct: which of them are right; right answers count as one answer however they are written.
        ties: where several answers have the most votes, `chance`: the problem counts as the chance that a random choice
            among them is right; `first`: the one that was given first is taken, as Counter.most_common does.

    Raises:
        ValueError: ties is neither.
    """
    if ties not in TIES:
        raise ValueError(f"ties should be one of {', '.join(TIES)}, not {ties!r}")
    credit = np.zeros(len(answers))
    for problem, (row, right) in enumerate(zip(answers, np.asarray(correct), strict=True)):
        votes = Counter(True if is_right else answer for answer, is_right in zip(row, right, strict=True))
        votes.pop(None, None)
        if votes:
            most = max(votes.values())
            leaders = [answer for answer, count in votes.items() if count == most]  # in the order of first votes
            credit[problem] = leaders[0] is True if ties == "first" else (True in leaders) / len(leaders)
    return credit


def paired_difference(
    first: Correct, second: Correct, confidence: float = 0.95, clusters: Codes | None = None
) -> Estimate:
    """How much more accurate `second` is than `first` on the same problems, in the same order (-1 to 1).

    The mean over problems of the difference of their mean accuracies, see `mean_difference`.

    Args:
        first: of shape (problems, repeats).
        second: of shape (problems, its own repeats).
        confidence: of the interval.
        clusters: of the problems, if they share any (eval.statistics.clusters).
    """
    if len(first) != len(second):
        raise ValueError(f"paired comparison needs the same problems, got {len(first)} and {len(second)}")
    gaps = np.asarray(second, dtype=float).mean(axis=1) - np.asarray(first, dtype=float).mean(axis=1)
    return mean_difference(linearised(gaps, clusters), confidence)


def mean_difference(differences: Floats, confidence: float = 0.95) -> Estimate:
    """The mean of one difference per problem, with Student's t interval over problems.

    (Miller 2024, arXiv:2411.00640, section 4.2.) Repeats of one problem are not independent, which the difference per
    problem takes into account. Where fewer than half of the problems differ, an imagined gain and an imagined loss of a
    whole problem widen the interval (as in Bonett and Price 2012, "Adjusted Wald confidence interval for a difference
    of binomial proportions based on paired data"), with a weight that falls with the number of problems that differ.

    Args:
        differences: from -1 to 1, of shape (problems,).
        confidence: of the interval.
    """
    n, value = len(differences), float(differences.mean())
    if n < 2:
        return Estimate(value, -1.0, 1.0)
    differ = int(np.count_nonzero(np.abs(differences) > 1e-12))
    weight = SPARSE / (SPARSE + differ) if 2 * differ < n else 0.0
    if np.ptp(differences) < 1e-12:
        weight = 1.0
    squares = float(((differences - value) ** 2).sum()) + 2 * weight
    points = n + 2 * weight
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1) * np.sqrt(squares / (points - 1) / points))
    return Estimate(value, max(-1.0, value - half), min(1.0, value + half))


def independent_difference(first: Estimate, second: Estimate) -> Estimate:
    """How much larger `second` is than `first` where only their own intervals are known: no pairing, so wider.

    The distances to the interval's ends are added in quadrature (MOVER: Zou and Donner 2008, Statistics in Medicine
    27:1693, eq. 3; with Wilson's intervals it is Newcombe's hybrid score interval, 1998, Statistics in Medicine 17:873,
    method 10), so that what is asymmetric near 0 and 1 stays so.
    """
    value = second.value - first.value
    below = float(np.hypot(second.value - second.low, first.high - first.value))
    above = float(np.hypot(second.high - second.value, first.value - first.low))
    return Estimate(value, max(-1.0, value - below), min(1.0, value + above))
