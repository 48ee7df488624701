"""pass@k and maj@k of two checkpoints on the same problems, with intervals and paired differences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from analysis.compare_checkpoints import graded_checkpoint
from eval import score, statistics
from eval.statistics import Estimate, Floats, clusters, pass_and_majority


@dataclass(frozen=True)
class PassDifference:
    """One measure (pass@4, maj@16) of both checkpoints, as fractions, and their paired difference."""

    measure: str
    baseline: Estimate
    checkpoint: Estimate
    difference: Estimate


def by_problem(graded: pd.DataFrame, ties: str) -> dict[str, Floats]:
    """The measures of one checkpoint by name, each with its value per problem, of shape (problems,).

    Args:
        graded: complete and sorted by problem and repeat.
        ties: of maj@k, one of statistics.TIES.
    """
    return pass_and_majority.by_problem(graded, score.spelled_answers(graded), ties)


def ties_of(graded: Iterable[pd.DataFrame]) -> str:
    """How ties of maj@k are broken in a comparison: as the source does if it is that of all tables, else by chance."""
    return pass_and_majority.ties_of(protocol for table in graded for protocol in table["protocol"].unique())


def differences(tables: tuple[pd.DataFrame, pd.DataFrame], ties: str | None = None) -> tuple[PassDifference, ...]:
    """The measures of baseline and checkpoint, which have the same problems and repeats. None with one repeat.

    The estimator of pass@k uses all repeats. Near k = all of them few repeats decide it, and the intervals, which are
    those of the mean over problems, hold for the expectation of the estimator.

    Args:
        tables: graded samples of baseline and checkpoint, complete and sorted by problem and repeat.
        ties: of maj@k, one of statistics.TIES; by default see `ties_of`.
    """
    if graded_checkpoint.repeats(tables[0]) < 2:
        return ()
    shared = clusters.of_rows(tables[0])
    by_side = [by_problem(table, ties or ties_of(tables)) for table in tables]
    sides = [{measure: clusters.linearised(values, shared) for measure, values in side.items()} for side in by_side]
    return tuple(
        PassDifference(
            measure,
            statistics.mean_over_problems(first),
            statistics.mean_over_problems(sides[1][measure]),
            statistics.mean_difference(sides[1][measure] - first),
        )
        for measure, first in sides[0].items()
    )
