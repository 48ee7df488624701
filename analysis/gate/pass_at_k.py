"""pass@k and maj@k of two checkpoints on the same problems, with intervals and paired differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.gate import inputs
from eval import score, statistics
from eval.statistics import Estimate


@dataclass(frozen=True)
class PassDifference:
    """One measure (pass@4, maj@16) of both checkpoints, as fractions, and their paired difference."""

    measure: str
    baseline: Estimate
    checkpoint: Estimate
    difference: Estimate


def curve(repeats: int) -> list[int]:
    """The k at which pass@k is shown: powers of two, and all repeats."""
    return sorted({*(2**i for i in range(repeats.bit_length()) if 2**i <= repeats), repeats})


def by_problem(graded: pd.DataFrame) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """The measures of one checkpoint, each with its value per problem, of shape (problems,).

    Args:
        graded: complete and sorted by problem and repeat.
    """
    correct = inputs.correct(graded)
    for k in curve(correct.shape[1]):
        yield f"pass@{k}", statistics.pass_by_problem(correct, k)
    answers = inputs.by_problem(graded, score.spelled_answers(graded))
    yield f"maj@{correct.shape[1]}", statistics.maj_by_problem(answers.tolist(), correct)


def differences(tables: tuple[pd.DataFrame, pd.DataFrame]) -> tuple[PassDifference, ...]:
    """The measures of baseline and checkpoint, which have the same problems and repeats. None with one repeat.

    The estimator of pass@k uses all repeats. Near k = all of them few repeats decide it, and the intervals, which are
    those of the mean over problems, hold for the expectation of the estimator.
    """
    if inputs.repeats(tables[0]) < 2:
        return ()
    sides = [dict(by_problem(table)) for table in tables]
    return tuple(
        PassDifference(
            measure,
            statistics.mean_over_problems(first),
            statistics.mean_over_problems(sides[1][measure]),
            statistics.mean_difference(sides[1][measure] - first),
        )
        for measure, first in sides[0].items()
    )
