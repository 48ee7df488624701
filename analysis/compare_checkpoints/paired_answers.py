"""The answers of two checkpoints to the same problems, and what ungradable ones could change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.compare_checkpoints import graded_checkpoint
from eval.statistics import Correct, clusters, mean_bounds, significance, skewed_changes
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

    def beyond(self, counts: Counts, null: float) -> Floats:
        """By cluster, values whose mean is the mean difference less `null`."""
        gaps = clusters.sums(counts / self.repeats - null, self.clusters)
        return np.asarray(gaps * (len(gaps) / len(counts)), dtype=np.float64)


@dataclass(frozen=True)
class PairedTest:
    """The test of one benchmark, or of the mean of several.

    Attributes:
        p_value: two-sided.
        unseen: the part of it that the number of problems alone sets (eval.statistics.skewed_changes); 0 if unused.
        name: of the test that was used.
    """

    p_value: float
    unseen: float
    name: str


def test(pairs: Sequence[PairedAnswers], margin: float) -> PairedTest:
    """Whether there is a gain or, with a margin, a loss beyond it.

    A loss beyond a margin is tested as a loss beyond none: the differences are shifted by the margin, and the same test
    is used. Ungradable answers are counted against the observed direction: one that they could turn round has p = 1.

    Args:
        pairs: one benchmark, or several for the test of their mean.
        margin: a loss up to this fraction counts as none.
    """
    gained = sum(float(pair.counts.mean()) / pair.repeats for pair in pairs) > 0
    null = 0.0 if gained else -margin
    counts = [pair.lowest_counts if gained else pair.highest_counts for pair in pairs]
    shifted = [pair.beyond(one, null) for one, pair in zip(counts, pairs, strict=True)]
    differences = [values + null for values in shifted]
    # Given which problems differ, their signs are symmetric.
    whole = not null and all(pair.repeats == 1 and pair.clusters is None for pair in pairs)
    name = _test_name(pairs, null, whole)
    if sum(float(values.mean()) for values in shifted) * (1 if gained else -1) <= 0:
        return PairedTest(1.0, 0.0, name)
    exact = len(pairs) == 1 and not null
    if exact:
        p = significance.permutation(clusters.sums(counts[0], pairs[0].clusters))
    else:
        p = significance.permutation_of_mean(shifted)
    if whole:
        return PairedTest(p, 0.0, name)
    skewed = float(skewed_changes.p_values([values[None] for values in differences], null)[0])
    return PairedTest(max(p, skewed), skewed_changes.chance_of_none(differences, null), name)


def _test_name(pairs: Sequence[PairedAnswers], null: float, whole: bool) -> str:
    if whole:
        return "exact McNemar" if len(pairs) == 1 else "permutation"
    exact = "exact " if len(pairs) == 1 and not null else ""
    beyond = f" of the loss beyond {-100 * null:g} points" if null else ""
    return f"{exact}permutation and empirical likelihood{beyond}"


def p_value(pairs: Sequence[PairedAnswers], margin: float) -> float:
    """The p-value of `test`."""
    return test(pairs, margin).p_value


def margin_excluded(pairs: Sequence[PairedAnswers], margin: float, alpha: float) -> bool | None:
    """Whether a loss larger than the margin is excluded, one-sided. None without a margin.

    Args:
        pairs: one benchmark, or several for their mean.
        margin: a fraction.
        alpha: level.
    """
    if not margin:
        return None
    return mean_bounds.exceeds([pair.lowest_counts / pair.repeats for pair in pairs], -margin) <= alpha


def adjusted_p_values(pairs: Sequence[PairedAnswers]) -> list[float]:
    """p-values that two checkpoints differ on each benchmark, and on the mean if there are several, by Holm.

    Args:
        pairs: of each benchmark.
    """
    means = [p_value(pairs, 0.0)] if len(pairs) > 1 else []
    return significance.holm([*(p_value([pair], 0.0) for pair in pairs), *means])
