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
class Answers:
    """One benchmark: answers of baseline and checkpoint, each of shape (problems, repeats), with equal repeats."""

    first: Correct
    second: Correct
    first_ungradable: Correct
    second_ungradable: Correct

    @classmethod
    def read(cls, tables: tuple[pd.DataFrame, pd.DataFrame]) -> Answers:
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
    def least(self) -> Counts:
        """The same if all ungradable answers of the baseline were right."""
        return np.asarray(self.counts - self.first_ungradable.sum(axis=1), dtype=np.int64)

    @property
    def most(self) -> Counts:
        """The same if all ungradable answers of the checkpoint were right."""
        return np.asarray(self.counts + self.second_ungradable.sum(axis=1), dtype=np.int64)

    @property
    def ungradable(self) -> tuple[int, int]:
        """Number of ungradable answers of baseline and checkpoint."""
        return int(self.first_ungradable.sum()), int(self.second_ungradable.sum())


def against(parts: Sequence[Answers]) -> list[Floats]:
    """Differences per benchmark and problem with ungradable answers counted against the observed direction."""
    gained = sum(part.counts.mean() / part.repeats for part in parts) > 0
    return [(part.least if gained else part.most) / part.repeats for part in parts]


def p_value(parts: Sequence[Answers], margin: float) -> float:
    """Two-sided p-value that there is no gain and, with a margin, no loss beyond it.

    Ungradable answers are counted against the observed direction: one that they could turn round has p = 1.

    Args:
        parts: one benchmark, or several for the test of their mean.
        margin: a loss up to this fraction counts as none.
    """
    observed = sum(float(part.counts.mean()) / part.repeats for part in parts)
    differences = against(parts)
    if sum(float(part.mean()) for part in differences) * observed <= 0:
        return 1.0
    if margin and observed < 0:
        return min(1.0, 2 * mean_bounds.exceeds([-part for part in differences], margin))
    if len(parts) == 1:
        return significance.permutation(parts[0].least if observed > 0 else parts[0].most)
    return significance.permutation_of_mean(differences)


def margin_excluded(parts: Sequence[Answers], margin: float, alpha: float) -> bool | None:
    """Whether a loss larger than the margin is excluded, one-sided. None without a margin.

    Args:
        parts: one benchmark, or several for their mean.
        margin: a fraction.
        alpha: level.
    """
    if not margin:
        return None
    return mean_bounds.exceeds([part.least / part.repeats for part in parts], -margin) <= alpha


def adjusted(parts: Sequence[Answers]) -> list[float]:
    """p-values that two checkpoints differ on each benchmark, and on the mean if there are several, by Holm.

    Args:
        parts: of each benchmark.
    """
    means = [p_value(parts, 0.0)] if len(parts) > 1 else []
    return significance.holm([*(p_value([part], 0.0) for part in parts), *means])
