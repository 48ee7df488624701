"""The answers of two checkpoints to the same problems, and what ungradable ones could change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.compare_checkpoints import graded_checkpoint
from eval.statistics import Correct, mean_bounds, significance

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PairedAnswers:
    """One benchmark: answers of baseline and checkpoint, each of shape (problems, repeats), with equal repeats."""

    first: Correct
    second: Correct
    first_ungradable: Correct
    second_ungradable: Correct

    @classmethod
    def read(cls, tables: tuple[pd.DataFrame, pd.DataFrame]) -> PairedAnswers:
        """From the graded tables of baseline and checkpoint."""
        return cls(*map(graded_checkpoint.correct, tables), *map(graded_checkpoint.ungradable, tables))

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
        arrays = (self.first, self.second, self.first_ungradable, self.second_ungradable)
        return PairedAnswers(*(array[:, :count] for array in arrays))


def cautious_differences(pairs: Sequence[PairedAnswers]) -> list[Floats]:
    """Differences per benchmark and problem with ungradable answers counted against the observed direction."""
    gained = sum(pair.counts.mean() / pair.repeats for pair in pairs) > 0
    return [(pair.lowest_counts if gained else pair.highest_counts) / pair.repeats for pair in pairs]


def p_value(pairs: Sequence[PairedAnswers], margin: float) -> float:
    """Two-sided p-value that there is no gain and, with a margin, no loss beyond it.

    Ungradable answers are counted against the observed direction: one that they could turn round has p = 1.

    Args:
        pairs: one benchmark, or several for the test of their mean.
        margin: a loss up to this fraction counts as none.
    """
    observed = sum(float(pair.counts.mean()) / pair.repeats for pair in pairs)
    differences = cautious_differences(pairs)
    if sum(float(values.mean()) for values in differences) * observed <= 0:
        return 1.0
    if margin and observed < 0:
        return min(1.0, 2 * mean_bounds.exceeds([-values for values in differences], margin))
    if len(pairs) == 1:
        return significance.permutation(pairs[0].lowest_counts if observed > 0 else pairs[0].highest_counts)
    return significance.permutation_of_mean(differences)


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
