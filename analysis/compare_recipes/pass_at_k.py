"""pass@k and maj@k of two recipes over their training seeds, with intervals for new seeds and new problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.compare_checkpoints import inputs, pass_at_k
from analysis.statistics import recipe_difference
from analysis.statistics.recipe_difference import RecipeResult


class RecipeRun(NamedTuple):
    """One training run on one benchmark: the samples of its checkpoints, and which of them counts on each problem."""

    tables: list[pd.DataFrame]
    counts: npt.NDArray[np.int64]

    def pick(self, values: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Of one array per checkpoint, each by problem, the rows of the checkpoints that count."""
        return np.stack(values)[self.counts, np.arange(len(self.counts))]


Recipe = dict[str, list[RecipeRun]]  # per benchmark, its runs


def compare(a: Recipe, b: Recipe, ties: str | None = None) -> dict[str, list[RecipeResult]]:
    """The measures of both recipes, a line per benchmark; nothing where there is one completion per problem.

    The tests are those of accuracies (`recipes.compare`), with a measure's value per problem for the accuracy.

    Args:
        a: the runs of recipe A.
        b: likewise of recipe B, with the same benchmarks, problems and repeats.
        ties: of maj@k, one of statistics.TIES; by default see `pass_at_k.ties_of`.
    """
    found: dict[str, list[RecipeResult]] = {}
    for name in a:
        tables = [table for one in (a, b) for run in one[name] for table in run.tables]
        if inputs.repeats(tables[0]) < 2:
            continue
        broken = ties or pass_at_k.ties_of(tables)
        values = [[_values(run, broken) for run in one[name]] for one in (a, b)]
        for measure in values[0][0]:
            first, second = ({name: [run[measure][:, None] for run in side]} for side in values)
            found.setdefault(measure, []).extend(recipe_difference.compare(first, second))
    return found


def _values(run: RecipeRun, ties: str) -> dict[str, npt.NDArray[np.float64]]:
    """The measures of a run, each with its value per problem."""
    each = [pass_at_k.by_problem(table, ties) for table in run.tables]
    return {measure: run.pick([one[measure] for one in each]) for measure in each[0]}
