"""The answers of two checkpoints to the same problems, and what ungradable ones could change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.compare_checkpoints import graded_checkpoint
from analysis.compare_checkpoints.comparison import LIKE, SAME
from analysis.statistics.checkpoint_difference import mean_of
from eval.statistics import (
    Correct,
    Estimate,
    clusters,
    mean_bounds,
    mean_difference,
    same_problems,
    significance,
    skewed_changes,
)
from eval.statistics.clusters import Codes

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PairedAnswers:
    """One benchmark: answers of baseline and checkpoint, each of shape (problems, repeats), with equal repeats.

    Problems of one of `clusters` (eval.statistics.clusters) are one observation of the test.
    """

    first: Correct
    second: Correct
    first_ungradable: Correct
    second_ungradable: Correct
    clusters: Codes | None = None

    @classmethod
    def read(cls, tables: tuple[pd.DataFrame, pd.DataFrame]) -> PairedAnswers:
        """From the graded tables of baseline and checkpoint."""
        (first, second), (one, two) = (
            map(read, tables) for read in (graded_checkpoint.correct, graded_checkpoint.ungradable)
        )
        return cls(first, second, one, two, clusters.of_rows(tables[0]))

    @property
    def has_copies(self) -> bool:
        """Whether the repeats of each problem all have the same verdict, as greedy ones do: they count as one."""
        arrays = (self.first, self.second, self.first_ungradable, self.second_ungradable)
        return self.repeats > 1 and all(bool((array == array[:, :1]).all()) for array in arrays)

    @property
    def repeats(self) -> int:
        """Completions per problem and side."""
        return int(self.first.shape[1])

    @property
    def counts(self) -> Counts:
        """Right answers of the checkpoint less those of the baseline, per problem. Ungradable ones are not right."""
        return np.asarray(self.second.sum(axis=1) - self.first.sum(axis=1), dtype=np.int64)

    @property
    def lowest_counts(self) -> Counts:
        """The counts if all ungradable answers of the baseline were right."""
        return np.asarray(self.counts - self.first_ungradable.sum(axis=1), dtype=np.int64)

    @property
    def highest_counts(self) -> Counts:
        """The counts if all ungradable answers of the checkpoint were right."""
        return np.asarray(self.counts + self.second_ungradable.sum(axis=1), dtype=np.int64)

    @property
    def ungradable(self) -> tuple[int, int]:
        """Number of ungradable answers of baseline and checkpoint."""
        return int(self.first_ungradable.sum()), int(self.second_ungradable.sum())

    @property
    def bounds(self) -> tuple[float, float]:
        """Of the difference as a fraction, whatever the ungradable answers are."""
        return float(self.lowest_counts.mean()) / self.repeats, float(self.highest_counts.mean()) / self.repeats

    def first_repeats(self, count: int) -> PairedAnswers:
        """The answers of the first repeats alone."""
        names = ("first", "second", "first_ungradable", "second_ungradable")
        return replace(self, **{name: getattr(self, name)[:, :count] for name in names})

    def against_direction(self, gained: bool) -> tuple[Correct, Correct]:
        """Right answers of both sides, with the ungradable ones counted against a gain, or against a loss."""
        if gained:
            return self.first | self.first_ungradable, self.second
        return self.first, self.second | self.second_ungradable

    def beyond(self, counts: Counts, null: float) -> Floats:
        """By cluster, values whose mean is the mean difference less `null`."""
        gaps = clusters.sums(counts / self.repeats - null, self.clusters)
        return np.asarray(gaps * (len(gaps) / len(counts)), dtype=np.float64)


@dataclass(frozen=True)
class PairedTest:
    """The test of one benchmark, or of the mean of several.

    Attributes:
        p_value: two-sided.
        name: of the test that was used.
        unseen: the part of it that few problems set (eval.statistics.skewed_changes); 0 if unused.
        hidden: how much a problem like these, none of which is here, could change the other way.
    """

    p_value: float
    name: str
    unseen: float = 0.0
    hidden: float = 0.0


def test(pairs: Sequence[PairedAnswers], margin: float, problems: str = LIKE, pooled: bool = False) -> PairedTest:
    """Whether there is a gain or, with a margin, a loss beyond it.

    A loss beyond a margin is tested as a loss beyond none: the differences are shifted by the margin, and the same test
    is used. Ungradable answers are counted against the observed direction: one that they could turn round has p = 1.

    Args:
        pairs: one benchmark, or several for the test of their mean.
        margin: a loss up to this fraction counts as none.
        problems: SAME or LIKE.
        pooled: instead of the mean of the benchmarks, that of all their problems.
    """
    weights = [len(pair.counts) if pooled else 1 for pair in pairs]
    gained = sum(weight * pair.counts.mean() / pair.repeats for weight, pair in zip(weights, pairs, strict=True)) > 0
    if problems == SAME:
        sides = [pair.against_direction(gained) for pair in pairs]
        p = same_problems.p_value(sides, gained, margin, weights)
        return PairedTest(p, "exact conditional test of these same problems")
    null = 0.0 if gained else -margin
    counts = [pair.lowest_counts if gained else pair.highest_counts for pair in pairs]
    shifted = [pair.beyond(one, null) for one, pair in zip(counts, pairs, strict=True)]
    if pooled:
        shifted = [_pooled(shifted, weights)]
    differences = [values + null for values in shifted]
    # Given which problems differ, their signs are symmetric.
    whole = not null and all(pair.repeats == 1 and pair.clusters is None for pair in pairs)
    name = _test_name(pairs, null, whole)
    if sum(float(values.mean()) for values in shifted) * (1 if gained else -1) <= 0:
        return PairedTest(1.0, name)
    exact = len(pairs) == 1 and not null
    if exact:
        p = significance.permutation(clusters.sums(counts[0], pairs[0].clusters))
    else:
        p = significance.permutation_of_mean(shifted)
    if whole:
        return PairedTest(p, name)
    hidden = skewed_changes.headroom([pair.first for pair in pairs], gained)
    if pooled:
        hidden = skewed_changes.headroom([np.concatenate([pair.first.mean(axis=1) for pair in pairs])], gained)
    skewed = skewed_changes.bounds([values[None] for values in differences], hidden, null)
    return PairedTest(max(p, float(skewed.p_values[0])), name, float(skewed.none[0]), hidden - null)


def _pooled(parts: Sequence[Floats], problems: Sequence[int]) -> Floats:
    """Values by cluster of several benchmarks as one set whose mean is that of all problems."""
    values = np.concatenate([part * (n / len(part)) for part, n in zip(parts, problems, strict=True)])
    return np.asarray(values * (len(values) / sum(problems)), dtype=np.float64)


def _test_name(pairs: Sequence[PairedAnswers], null: float, whole: bool) -> str:
    if whole:
        return "exact McNemar" if len(pairs) == 1 else "permutation"
    exact = "exact " if len(pairs) == 1 and not null else ""
    beyond = f" of the loss beyond {-100 * null:g} points" if null else ""
    return f"{exact}permutation, empirical likelihood and a bound on problems not drawn{beyond}"


def p_value(pairs: Sequence[PairedAnswers], margin: float) -> float:
    """The p-value of `test`."""
    return test(pairs, margin).p_value


def pooled_difference(pairs: Sequence[PairedAnswers], problems: str) -> Estimate:
    """The difference on all problems of all benchmarks, with its interval.

    Args:
        pairs: of each benchmark.
        problems: SAME or LIKE.
    """
    sizes = [len(pair.counts) for pair in pairs]
    if problems == LIKE:
        return mean_difference(_pooled([pair.beyond(pair.counts, 0.0) for pair in pairs], sizes))
    parts = [same_problems.difference((pair.first, pair.second)) for pair in pairs]
    value = float(np.average([part.value for part in parts], weights=sizes))
    half = float(np.hypot.reduce([n * (part.high - part.low) / 2 for part, n in zip(parts, sizes, strict=True)]))
    return Estimate(value, value - half / sum(sizes), value + half / sum(sizes))


def margin_excluded(pairs: Sequence[PairedAnswers], margin: float, alpha: float, problems: str = LIKE) -> bool | None:
    """Whether a loss larger than the margin is excluded, one-sided. None without a margin.

    Args:
        pairs: one benchmark, or several for their mean.
        margin: a fraction.
        alpha: level.
        problems: SAME or LIKE.
    """
    if not margin:
        return None
    if problems == SAME:
        sides = [pair.against_direction(True) for pair in pairs]
        return mean_of([same_problems.difference(side, 1 - 2 * alpha) for side in sides]).low > -margin
    return mean_bounds.exceeds([pair.lowest_counts / pair.repeats for pair in pairs], -margin) <= alpha


def adjusted_p_values(pairs: Sequence[PairedAnswers]) -> list[float]:
    """p-values that two checkpoints differ on each benchmark, and on the mean if there are several, by Holm.

    Args:
        pairs: of each benchmark.
    """
    means = [p_value(pairs, 0.0)] if len(pairs) > 1 else []
    return significance.holm([*(p_value([pair], 0.0) for pair in pairs), *means])
