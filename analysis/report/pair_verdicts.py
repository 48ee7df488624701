"""Which of a page's runs and recipes differ: their pairs, with one correction over all that the page decides."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.compare_checkpoints import paired_answers
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference, training_seeds
from analysis.statistics.recipe_difference import RecipeResult
from analysis.statistics.training_seeds import Recipe
from eval.statistics import Estimate, significance

CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class PairVerdict:
    """Two runs, or two recipes with several seeds, on the benchmarks that both have.

    Attributes:
        first: one run, or the first of a recipe's.
        second: likewise.
        benchmarks: what both have.
        obstacle: why they may not be compared; empty if they may.
        difference: at the last checkpoints, second less first as a fraction; None with an obstacle.
        p_value: of that difference alone.
        p_adjusted: by Holm over all pairs of the page.
        line: of two recipes, the whole result of their tests.
    """

    first: RunResults
    second: RunResults
    benchmarks: tuple[str, ...]
    obstacle: str = ""
    difference: Estimate | None = None
    p_value: float = 1.0
    p_adjusted: float = 1.0
    line: RecipeResult | None = None

    @property
    def change(self) -> str:
        """What the corrected test says of the second beside the first: rose, fell or cannot tell."""
        if self.difference is None or self.p_adjusted > significance.ALPHA:
            return CANNOT_TELL
        return "rose" if self.difference.value > 0 else "fell"


@dataclass(frozen=True)
class PagePairs:
    """The pairs of a page, decided together.

    Attributes:
        runs: of checkpoints; two runs of recipes with several seeds are compared as recipes alone.
        recipes: of recipes with several seeds.
    """

    runs: list[PairVerdict]
    recipes: list[PairVerdict]

    @property
    def tests(self) -> int:
        """Over how many comparisons the correction goes."""
        return sum(not pair.obstacle for pair in (*self.runs, *self.recipes))

    @classmethod
    def compared(cls, runs: Sequence[RunResults], repeated: Sequence[Recipe] = ()) -> PagePairs:
        """Compare all pairs, and correct for their number (Holm 1979).

        Args:
            runs: all of the page.
            repeated: its recipes with several training seeds.
        """
        by_run = {run.name: number for number, recipe in enumerate(repeated) for run in recipe.runs}
        alone = [
            _runs_compared(first, second, shared)
            for first, second in itertools.combinations(runs, 2)
            if not (first.name in by_run and second.name in by_run) and (shared := _shared(first, second))
        ]
        recipes = [
            _recipes_compared(first, second, shared)
            for first, second in itertools.combinations(repeated, 2)
            if (shared := _shared(first.runs[0], second.runs[0]))
        ]
        tested = [pair for pair in (*alone, *recipes) if not pair.obstacle]
        adjusted = dict(zip(map(id, tested), significance.holm([pair.p_value for pair in tested]), strict=True))
        decided = [
            [replace(pair, p_adjusted=adjusted.get(id(pair), 1.0)) for pair in part] for part in (alone, recipes)
        ]
        return cls(*decided)


def _shared(first: RunResults, second: RunResults) -> tuple[str, ...]:
    return tuple(name for name in first.benchmarks if name in second.benchmarks)


def _runs_compared(first: RunResults, second: RunResults, benchmarks: tuple[str, ...]) -> PairVerdict:
    if why := checkpoint_difference.obstacles(first, second, benchmarks):
        return PairVerdict(first, second, benchmarks, why)
    answers = []
    for name in benchmarks:
        sides = [run.correct(run.last, name) for run in (first, second)]
        fewest = min(side.shape[1] for side in sides)
        one, two = (side[:, :fewest] for side in sides)
        answers.append(PairedAnswers(one, two, np.zeros_like(one), np.zeros_like(two), first.clusters(name)))
    gap = checkpoint_difference.between_runs(first, second, benchmarks)
    return PairVerdict(first, second, benchmarks, "", gap, paired_answers.p_value(answers, 0.0))


def _recipes_compared(first: Recipe, second: Recipe, benchmarks: tuple[str, ...]) -> PairVerdict:
    sides = (first.runs[0], second.runs[0])
    if why := checkpoint_difference.obstacles(*sides, benchmarks):
        return PairVerdict(*sides, benchmarks, why)
    line = training_seeds.compare(first, second, benchmarks)
    return PairVerdict(*sides, benchmarks, "", line.interval(), line.p_value, line=line)
