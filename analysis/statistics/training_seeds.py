"""Runs of one recipe that differ in their training seed alone: their mean, its interval, and the spread over seeds.

A checkpoint is one draw of its recipe, so a sentence about a recipe needs several seeds. Its interval is for new seeds
and new problems (analysis.statistics.recipe_difference).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analysis import comparability
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference, recipe_difference
from analysis.statistics.checkpoint_difference import mean_of
from contracts import seeds
from eval.statistics import Estimate, clusters

SEED = re.compile(r"(?:, seed |/seed-)\d+\Z")  # at the end of a run's title or name


class Recipe(NamedTuple):
    """One run file's trainings, one per seed; several only if they were measured in the same way."""

    runs: list[RunResults]

    @property
    def has_several_seeds(self) -> bool:
        """Whether there is more than one seed."""
        return len(self.runs) > 1

    @property
    def display_name(self) -> str:
        """What a page calls them together; the run's own title where there is one seed."""
        first = self.runs[0].display_name
        return f"{SEED.sub('', first)}, {len(self.runs)} seeds" if self.has_several_seeds else first

    @property
    def steps(self) -> list[int]:
        """The checkpoints that every seed has."""
        return sorted(set.intersection(*(set(run.steps) for run in self.runs)))


def by_recipe(runs: Iterable[RunResults]) -> list[Recipe]:
    """The runs by recipe, in the order of the first of each. Imported generations stay alone."""
    return [
        Recipe(kept)
        for own in _by_name(runs).values()
        for kept in ([own] if _measured_alike(own) and not obstacle(own) else [[run] for run in own])
    ]


def _by_name(runs: Iterable[RunResults]) -> dict[str, list[RunResults]]:
    by_name: dict[str, list[RunResults]] = {}
    for run in runs:
        by_name.setdefault(seeds.run_of(run.name) if run.trained else run.name, []).append(run)
    return by_name


def obstacles(runs: Iterable[RunResults]) -> list[str]:
    """Why runs of a page that differ in their seed alone are not the seeds of one recipe, in sentences."""
    return [why for own in _by_name(runs).values() if (why := obstacle(own))]


def obstacle(runs: Sequence[RunResults]) -> str:
    """Why trainings are not the seeds of one recipe, as `snakemake compare_recipes` has it; empty if they are."""
    return copies(runs) or different_ends(runs)


def copies(runs: Iterable[RunResults]) -> str:
    """Which trainings, of one run file or of several, are one, in words; empty if each is its own."""
    for first, second in itertools.combinations((run for run in runs if run.evaluated), 2):
        if same := _sameness(first, second):
            return f"{first.name} and {second.name} have the same {same}, so they are one training"
    return ""


def different_ends(runs: Iterable[RunResults]) -> str:
    """At which steps the last checkpoints of a recipe's trainings are, in words; empty if at one."""
    runs = [run for run in runs if run.evaluated]
    if len({run.last for run in runs}) > 1:
        ends = ", ".join(f"{run.name} at {run.last}" for run in runs)
        return f"the last evaluated checkpoints are of different steps: {ends}"
    return ""


def _sameness(first: RunResults, second: RunResults) -> str:
    """What shows that two runs' last checkpoints are of one training; empty if nothing does."""
    cells = [((first.last, name), (second.last, name)) for name in first.benchmarks if name in second.benchmarks]
    weights = [{first.weights(*one) for one, _ in cells}, {second.weights(*two) for _, two in cells}]
    if cells and weights[0] == weights[1] and None not in weights[0]:
        return "weights"
    return "completions" if cells and all(_same_completions(first, second, *pair) for pair in cells) else ""


def _same_completions(first: RunResults, second: RunResults, one: tuple[int, str], two: tuple[int, str]) -> bool:
    as_many = len(first.rows(*one)) == len(second.rows(*two))
    if as_many and first.last_facts[one[1]] != second.last_facts[two[1]]:  # so that no texts are read
        return False
    return comparability.same_completions(first.samples(*one), second.samples(*two))


def _measured_alike(runs: Sequence[RunResults]) -> bool:
    """Whether all have the same benchmarks and problems, measured in the same way, so that a mean has a meaning."""
    first = runs[0]
    return all(
        run.benchmarks == first.benchmarks
        and not checkpoint_difference.obstacles(first, run, run.benchmarks)
        and all(len(run.problems(name)) > 1 for name in run.benchmarks)
        for run in runs[1:]
    )


def clustered(run: RunResults, step: int, benchmark: str) -> npt.NDArray[np.float64]:
    """Right or not, with one row per cluster of problems (eval.statistics.clusters), of shape (clusters, repeats)."""
    return clusters.linearised(run.correct(step, benchmark), run.clusters(benchmark))


def _accuracies_at(recipe: Recipe, step: int | None, benchmarks: Sequence[str]) -> list[npt.NDArray[np.float64]]:
    """Accuracies per benchmark, of shape (seeds, problems or clusters of them).

    Without a step, those of each seed's last checkpoint.
    """
    return [
        np.stack([clustered(run, run.last if step is None else step, name).mean(axis=1) for run in recipe.runs])
        for name in benchmarks
    ]


def accuracy(recipe: Recipe, step: int | None, benchmarks: Sequence[str]) -> Estimate:
    """Mean accuracy over seeds and benchmarks at one checkpoint, as a fraction, with its interval.

    Args:
        recipe: with several seeds.
        step: that every seed has; None for each seed's last checkpoint.
        benchmarks: those to average over.
    """
    value, low, high = recipe_difference.mean_over_seeds(_accuracies_at(recipe, step, benchmarks))
    return Estimate(value, max(0.0, low), high)


def before_and_last(recipe: Recipe) -> tuple[Estimate, Estimate]:
    """Mean accuracy over all benchmarks, of the base model and of each seed's last checkpoint."""
    names = recipe.runs[0].benchmarks
    return accuracy(recipe, recipe.steps[0], names), accuracy(recipe, None, names)


def gain(recipe: Recipe, step: int | None, benchmarks: Sequence[str]) -> Estimate:
    """Mean gain of a checkpoint over the first one, paired by seed and problem, with its interval.

    Args:
        recipe: with several seeds; of one seed the interval is that of its checkpoint, for new problems alone.
        step: that every seed has; None for each seed's last checkpoint.
        benchmarks: those to average over.
    """
    if not recipe.has_several_seeds:
        run = recipe.runs[0]
        after = run.last if step is None else step
        return mean_of([checkpoint_difference.difference(run, after, name) for name in benchmarks])
    before = _accuracies_at(recipe, recipe.steps[0], benchmarks)
    return recipe_difference.mean_over_seeds(
        [after - base for after, base in zip(_accuracies_at(recipe, step, benchmarks), before, strict=True)]
    )


def accuracy_of_each_seed(recipe: Recipe, step: int | None, benchmarks: Sequence[str]) -> npt.NDArray[np.float64]:
    """The accuracy of each seed, averaged over benchmarks; without a step, of its last checkpoint."""
    means: npt.NDArray[np.float64] = np.mean(
        [part.mean(axis=1) for part in _accuracies_at(recipe, step, benchmarks)], axis=0
    )
    return means


def compare(first: Recipe, second: Recipe, benchmarks: Sequence[str]) -> recipe_difference.RecipeResult:
    """The second recipe less the first, at each seed's last checkpoint, by the tests of `snakemake compare_recipes`.

    Args:
        first: with several seeds.
        second: likewise.
        benchmarks: that both have, measured in the same way; the result is of their mean.
    """
    both = (first, second)
    fewest = {
        name: min(run.correct(run.last, name).shape[1] for side in both for run in side.runs) for name in benchmarks
    }
    a, b = (
        {name: [clustered(run, run.last, name)[:, : fewest[name]] for run in side.runs] for name in benchmarks}
        for side in both
    )
    return recipe_difference.compare(a, b)[-1]
