"""Read the graded samples of two recipes' training runs, and check that they can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis import comparability, hash_order
from analysis.compare_checkpoints import graded_checkpoint
from analysis.compare_checkpoints.graded_checkpoint import GradedCheckpoint
from analysis.reference import in_order
from contracts import seeds, steps
from eval.statistics import clusters
from system.errors import UserError

LAST, CHOSEN = RULES = ("last", "chosen")
ACCEPTABLE = (*graded_checkpoint.ACCEPTABLE, "steps")  # what may differ between the runs


class GradedRun(NamedTuple):
    """One training run on one benchmark: the samples of its checkpoints, and which of them counts on each problem."""

    tables: list[pd.DataFrame]
    counts: npt.NDArray[np.int64]

    def pick(self, values: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Of one array per checkpoint, each by problem, the rows of the checkpoints that count."""
        return np.stack(values)[self.counts, np.arange(len(self.counts))]

    def by_cluster(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Values by problem with one row per cluster of problems (eval.statistics.clusters)."""
        return clusters.linearised(values, clusters.of_rows(self.tables[0]))


GradedRecipe = dict[str, list[GradedRun]]  # per benchmark, its runs
CorrectAnswers = dict[str, list[npt.NDArray[np.bool_]]]  # per benchmark, those of each run


def _graded_run(checkpoints: Sequence[GradedCheckpoint], benchmark: str, repeats: int) -> GradedRun:
    """A run's samples with this many repeats. Of several checkpoints, each half has the best on the other half."""
    tables = [checkpoint.tables[benchmark] for checkpoint in checkpoints]
    tables = [table[table["repeat"] < repeats].reset_index(drop=True) for table in tables]
    correct = np.stack([graded_checkpoint.correct(table) for table in tables])
    halves = hash_order.halves(tables[0].drop_duplicates("problem_id"))
    counts = np.full(len(halves), len(checkpoints) - 1)
    for side in (0, 1):
        others = correct[:, halves != side]
        if others.size:
            counts[halves == side] = int(others.mean(axis=(1, 2)).argmax())
    return GradedRun(tables, counts)


def checkpoints_by_rule(folder: Path, rule: str) -> list[GradedCheckpoint]:
    """The evaluated checkpoints of a run that the rule may choose from; the model before training is none."""
    trained = [path for step, path in steps.folders(folder).items() if step > 0]
    if not trained:
        return [graded_checkpoint.read(folder)]
    return [graded_checkpoint.read(path) for path in (trained if rule == CHOSEN else trained[-1:])]


def read_correct_answers(
    sides: Sequence[Sequence[Path]],
    rule: str = LAST,
    benchmarks: Sequence[str] | None = None,
    accepted: Sequence[str] = (),
) -> list[CorrectAnswers]:
    """The correct answers of both recipes. The arguments are those of `comparable_recipes`."""
    return correct_answers(comparable_recipes(sides, rule, benchmarks, accepted))


def correct_answers(recipes: Sequence[GradedRecipe]) -> list[CorrectAnswers]:
    """Per recipe and benchmark, the correct answers of each run, of shape (problems, repeats)."""
    return [
        {
            name: [run.pick([graded_checkpoint.correct(table) for table in run.tables]) for run in runs]
            for name, runs in recipe.items()
        }
        for recipe in recipes
    ]


def clustered_answers(recipes: Sequence[GradedRecipe]) -> list[dict[str, list[npt.NDArray[np.float64]]]]:
    """The same with one row per cluster of problems."""
    return [
        {
            name: [run.by_cluster(values) for run, values in zip(recipe[name], answers, strict=True)]
            for name, answers in own.items()
        }
        for recipe, own in zip(recipes, correct_answers(recipes), strict=True)
    ]


def comparable_recipes(
    sides: Sequence[Sequence[Path]], rule: str, benchmarks: Sequence[str] | None, accepted: Sequence[str]
) -> list[GradedRecipe]:
    """The graded samples of both recipes, with the same number of repeats everywhere.

    Args:
        sides: per recipe, the folders of its runs.
        rule: LAST or CHOSEN.
        benchmarks: by default all of the first run.
        accepted: what may differ between runs, of ACCEPTABLE.

    Raises:
        UserError: a run is named twice or is a copy of another, the runs of a side end at different steps, or one
            is not comparable with the first.
    """
    folders = [folder.resolve() for side in sides for folder in side]
    if repeated := sorted({str(folder) for folder in folders if folders.count(folder) > 1}):
        raise UserError(
            f"each training run should be named once, but {', '.join(repeated)} is named again", code="repeated-name"
        )
    recipes = _on_shared_problems([[checkpoints_by_rule(folder, rule) for folder in side] for side in sides], accepted)
    first = recipes[0][0][-1]
    names = in_order(benchmarks or first.tables)
    for checkpoint in (checkpoint for runs in recipes for run in runs for checkpoint in run):
        for name in names:
            if reasons := graded_checkpoint.obstacles(checkpoint, first, name, accepted):
                raise UserError(
                    f"{checkpoint.name} and {first.name} cannot be compared on {name}: {'; '.join(reasons)}",
                    code="not-comparable", benchmark=name,
                )  # fmt: skip
    _check_copies(recipes)
    if rule == LAST and "steps" not in accepted:
        _check_last_steps(recipes)
    checkpoints = [checkpoint for runs in recipes for run in runs for checkpoint in run]
    fewest = {name: min(graded_checkpoint.repeats(each.tables[name]) for each in checkpoints) for name in names}
    return [{name: [_graded_run(run, name, fewest[name]) for run in runs] for name in names} for runs in recipes]


def _on_shared_problems(
    recipes: Sequence[Sequence[Sequence[GradedCheckpoint]]], accepted: Sequence[str]
) -> list[list[list[GradedCheckpoint]]]:
    every = [checkpoint for runs in recipes for run in runs for checkpoint in run]
    shared = iter(graded_checkpoint.on_shared_problems(every, accepted))
    return [[[next(shared) for _ in run] for run in runs] for runs in recipes]


def training_seeds(recipe: GradedRecipe) -> list[str]:
    """The training seed of each run, by the name of the run; empty where it says none."""
    return [
        name.removeprefix(seeds.run_of(name)).removeprefix("/seed-")
        for run in next(iter(recipe.values()))
        for name in [str(run.tables[-1]["run"].iloc[0])]
    ]


def paired_by_seed(recipes: Sequence[GradedRecipe]) -> list[GradedRecipe]:
    """Both recipes with their runs in the order of the seeds; raises UserError unless both have the same seeds."""
    numbers = [training_seeds(recipe) for recipe in recipes]
    if not all(map(all, numbers)) or sorted(numbers[0]) != sorted(numbers[1]):
        texts = [", ".join(number or "none" for number in side) for side in numbers]
        raise UserError(
            f"--paired-seeds needs the same training seeds on both sides, but A has {texts[0]} and B has {texts[1]}; "
            "compare without it, or train the same seeds",
            code="unpaired-seeds", seeds=numbers,
        )  # fmt: skip
    orders = [sorted(range(len(side)), key=side.__getitem__) for side in numbers]
    return [
        {name: [runs[i] for i in order] for name, runs in recipe.items()}
        for recipe, order in zip(recipes, orders, strict=True)
    ]


def last_steps(recipe: GradedRecipe) -> list[int | None]:
    """The step of each run's last checkpoint; None where it is not recorded."""
    return [_last_step(run.tables[-1]) for run in next(iter(recipe.values()))]


def _last_step(graded: pd.DataFrame) -> int | None:
    steps_of_samples = graded["step"].dropna()
    return int(steps_of_samples.iloc[0]) if len(steps_of_samples) else None


def _check_last_steps(recipes: Sequence[Sequence[Sequence[GradedCheckpoint]]]) -> None:
    """Refuse runs of a side that end at different steps: one of them may be unfinished, or is another recipe."""
    for runs in recipes:
        ends = {run[-1].name: _last_step(next(iter(run[-1].tables.values()))) for run in runs}
        if len(set(ends.values())) > 1:
            raise UserError(
                "the last checkpoints of a recipe's runs should be of one step, but "
                + ", ".join(f"{name} ends at {step}" for name, step in ends.items())
                + "; evaluate the same steps, or compare all the same with --accept steps",
                code="different-last-steps", steps=list(ends.values()),
            )  # fmt: skip


def _check_copies(recipes: Sequence[Sequence[Sequence[GradedCheckpoint]]]) -> None:
    """Refuse runs that are no trainings of their own: a seed a side is evidence once.

    Copies have the same weights, by their recorded hashes, or the same completions. On a side, the same run and seed is
    a repeat too, even if the weights differ, as two trainings of one seed may.
    """
    for side, runs in enumerate(recipes):
        for index, run in enumerate(runs):
            others = [(other, side) for other in runs[:index]]
            others += [(other, 0) for other in recipes[0]] if side else []
            for other, of_side in others:
                if same := _sameness(run[-1], other[-1], of_side == side):
                    across = "" if of_side == side else ": A and B are not two recipes here"
                    raise UserError(
                        f"each seed should be a training of its own, but {run[-1].name} and {other[-1].name} have the "
                        f"same {same}{across}; name each training once",
                        code="repeated-training", same=same,
                    )  # fmt: skip


def _sameness(first: GradedCheckpoint, second: GradedCheckpoint, one_side: bool) -> str:
    """What shows that two last checkpoints are of one training; empty if nothing does."""
    if first.weights and first.weights == second.weights:
        return "weights"
    shared = first.tables.keys() & second.tables.keys()
    if shared and all(comparability.same_completions(first.tables[name], second.tables[name]) for name in shared):
        return "completions"
    names = [{str(run) for table in each.tables.values() for run in table["run"].dropna()} for each in (first, second)]
    same_seed = names[0] == names[1] and all(seeds.run_of(name) != name for name in names[0])
    return "run and seed" if one_side and names[0] and same_seed else ""
