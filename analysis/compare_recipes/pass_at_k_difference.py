"""pass@k and maj@k of two recipes over their training seeds, with intervals for new seeds and new problems."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.compare_checkpoints import graded_checkpoint, pass_at_k_difference
from analysis.compare_recipes.training_runs import GradedRecipe, GradedRun
from analysis.statistics import recipe_difference
from analysis.statistics.recipe_difference import RecipeResult


def compare(
    a: GradedRecipe, b: GradedRecipe, ties: str | None = None, paired: bool = False
) -> dict[str, list[RecipeResult]]:
    """The measures of both recipes, a line per benchmark; nothing where there is one completion per problem.

    The tests are those of accuracies (recipe_difference.compare), with a measure's value per problem for the accuracy.

    Args:
        a: the runs of recipe A.
        b: likewise of recipe B, with the same benchmarks, problems and repeats.
        ties: of maj@k, one of statistics.TIES; by default see `pass_at_k_difference.ties_of`.
        paired: see recipe_difference.compare.
    """
    by_measure: dict[str, list[RecipeResult]] = {}
    for benchmark in a:
        tables = [table for recipe in (a, b) for run in recipe[benchmark] for table in run.tables]
        if graded_checkpoint.repeats(tables[0]) < 2:
            continue
        tie_rule = ties or pass_at_k_difference.ties_of(tables)
        values = [[_values_by_measure(run, tie_rule) for run in recipe[benchmark]] for recipe in (a, b)]
        for measure in values[0][0]:
            first, second = ({benchmark: [run[measure][:, None] for run in side]} for side in values)
            by_measure.setdefault(measure, []).extend(recipe_difference.compare(first, second, paired=paired))
    return by_measure


def _values_by_measure(run: GradedRun, ties: str) -> dict[str, npt.NDArray[np.float64]]:
    """The measures of a run, each with its value per problem, or cluster of them."""
    by_checkpoint = [pass_at_k_difference.by_problem(table, ties) for table in run.tables]
    return {
        measure: run.by_cluster(run.pick([values[measure] for values in by_checkpoint])) for measure in by_checkpoint[0]
    }
