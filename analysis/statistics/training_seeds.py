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
import pandas as pd

from analysis.report.tables import interval_columns, interval_text
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference, recipe_difference
from analysis.statistics.accuracy_rows import AVERAGE, BASE_MARKS
from analysis.statistics.checkpoint_difference import mean_of
from analysis.table_export import Table, percent, points
from contracts import seeds
from eval.statistics import Estimate

VERDICTS = {"B is better": "the second recipe is better", "A is better": "the first recipe is better"}
SEED = re.compile(r"(?:, seed |/seed-)\d+\Z")  # at the end of a run's title or name


class Recipe(NamedTuple):
    """One run file's trainings, one per seed; several only if they were measured in the same way."""

    runs: list[RunResults]

    @property
    def several(self) -> bool:
        """Whether there is more than one seed."""
        return len(self.runs) > 1

    @property
    def shown(self) -> str:
        """What a page calls them together; the run's own title where there is one seed."""
        first = self.runs[0].shown
        return f"{SEED.sub('', first)}, {len(self.runs)} seeds" if self.several else first

    @property
    def steps(self) -> list[int]:
        """The checkpoints that every seed has."""
        return sorted(set.intersection(*(set(run.steps) for run in self.runs)))


def by_recipe(runs: Iterable[RunResults]) -> list[Recipe]:
    """The runs by recipe, in the order of the first of each. Imported generations stay alone."""
    found: dict[str, list[RunResults]] = {}
    for run in runs:
        found.setdefault(seeds.run_of(run.name) if run.trained else run.name, []).append(run)
    return [
        Recipe(kept) for own in found.values() for kept in ([own] if _measured_alike(own) else [[run] for run in own])
    ]


def _measured_alike(runs: Sequence[RunResults]) -> bool:
    """Whether all have the same benchmarks and problems, measured in the same way, so that a mean has a meaning."""
    first = runs[0]
    return all(
        run.benchmarks == first.benchmarks
        and not checkpoint_difference.obstacles(first, run, run.benchmarks)
        and all(len(run.problems(name)) > 1 for name in run.benchmarks)
        for run in runs[1:]
    )


def _at(recipe: Recipe, step: int | None, benchmarks: Sequence[str]) -> list[npt.NDArray[np.float64]]:
    """Accuracies per benchmark, of shape (seeds, problems). Without a step, those of each seed's last checkpoint."""
    return [
        np.stack([run.correct(run.last if step is None else step, name).mean(axis=1) for run in recipe.runs])
        for name in benchmarks
    ]


def accuracy(recipe: Recipe, step: int | None, benchmarks: Sequence[str]) -> Estimate:
    """Mean accuracy over seeds and benchmarks at one checkpoint, as a fraction, with its interval.

    Args:
        recipe: with several seeds.
        step: that every seed has; None for each seed's last checkpoint.
        benchmarks: those to average over.
    """
    value, low, high = recipe_difference.over_seeds(_at(recipe, step, benchmarks))
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
    if not recipe.several:
        run = recipe.runs[0]
        after = run.last if step is None else step
        return mean_of([checkpoint_difference.difference(run, after, name) for name in benchmarks])
    before = _at(recipe, recipe.steps[0], benchmarks)
    return recipe_difference.over_seeds(
        [after - base for after, base in zip(_at(recipe, step, benchmarks), before, strict=True)]
    )


def of_each_seed(recipe: Recipe, step: int | None, benchmarks: Sequence[str]) -> npt.NDArray[np.float64]:
    """The accuracy of each seed, averaged over benchmarks; without a step, of its last checkpoint."""
    means: npt.NDArray[np.float64] = np.mean([part.mean(axis=1) for part in _at(recipe, step, benchmarks)], axis=0)
    return means


def _columns(recipe: Recipe) -> list[tuple[str, list[str]]]:
    names = recipe.runs[0].benchmarks
    return [*((name, [name]) for name in names), *([(AVERAGE, names)] if len(names) > 1 else [])]


def seeds_table(found: Sequence[Recipe]) -> Table:
    """Per recipe, checkpoint and benchmark: the mean over seeds, its interval, and the spread over seeds."""
    data, shown = [], []
    for recipe, step in [(each, step) for each in found for step in each.steps]:
        for title, names in _columns(recipe):
            each, mean = of_each_seed(recipe, step, names), accuracy(recipe, step, names)
            change = gain(recipe, step, names) if step != recipe.steps[0] else None
            spread = float(each.std(ddof=1))
            data.append(
                {
                    "recipe": seeds.run_of(recipe.runs[0].name), "step": step, "benchmark": title, "seeds": len(each),
                    **interval_columns({"mean": mean, "gain": change}),
                    "deviation": spread, "lowest": float(each.min()), "highest": float(each.max()),
                }
            )  # fmt: skip
            shown.append(
                {
                    "recipe": recipe.shown,
                    "checkpoint": recipe.runs[0].label(step),
                    "benchmark": title,
                    "mean over seeds (%)": interval_text(mean, percent),
                    "standard deviation over seeds (points)": f"{100 * spread:.1f}",
                    "lowest to highest seed (%)": f"{percent(float(each.min()))} to {percent(float(each.max()))}",
                    "gain over the base model (points)": (
                        f"{interval_text(change, points)} {BASE_MARKS[change.change]}" if change else "–"
                    ),
                }
            )
    return Table("seeds", pd.DataFrame(data), pd.DataFrame(shown))


def compare(first: Recipe, second: Recipe, benchmarks: Sequence[str]) -> recipe_difference.RecipeResult:
    """The second recipe less the first, at each seed's last checkpoint, by the tests of `snakemake compare`.

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
        {name: [run.correct(run.last, name)[:, : fewest[name]] for run in side.runs] for name in benchmarks}
        for side in both
    )
    return recipe_difference.compare(a, b)[-1]


def recipe_pairs_table(found: Sequence[Recipe]) -> Table | None:
    """Recipes against each other, by `snakemake compare`'s tests, on the benchmarks that both have."""
    data, shown = [], []
    for first, second in itertools.combinations(found, 2):
        shared = [name for name in first.runs[0].benchmarks if name in second.runs[0].benchmarks]
        if not shared or checkpoint_difference.obstacles(first.runs[0], second.runs[0], shared):
            continue
        line = compare(first, second, shared)
        names, gap = [seeds.run_of(side.runs[0].name) for side in (first, second)], line.welch.difference
        verdict = VERDICTS.get(line.verdict, line.verdict)
        data.append(
            {"first": names[0], "second": names[1], **gap._asdict(), "p_adjusted": line.p_adjusted, "verdict": verdict}
        )
        shown.append(
            {
                "first": first.shown,
                "second": second.shown,
                "benchmarks": len(shared),
                "second less first (points)": interval_text(gap, points),
                "detectable": f"±{100 * line.detectable:.1f}",
                "verdict": verdict,
            }
        )
    return Table("recipe_pairs", pd.DataFrame(data), pd.DataFrame(shown)) if shown else None
