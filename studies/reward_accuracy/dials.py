"""The settings of a task of `snakemake study_reward_accuracy`: their trainings, and the error of their rewards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from analysis.results import RunResults
from analysis.statistics import recipe_difference
from analysis.sweep import settings
from contracts.paths import ResultsFolder
from eval import benchmark
from eval.statistics import Estimate
from recipes.rewards import problem_from_columns
from recipes.runs import load_run
from studies.reward_accuracy import gain_fit, reward_error
from studies.reward_accuracy.gain_fit import Fit, Knee
from studies.reward_accuracy.reward_error import MEASURES, Completions, Cost, Measured, measure
from studies.reward_accuracy.runs import FEWEST, StudyTask
from system.errors import UserError
from tasks.problems import Problem

Floats = npt.NDArray[np.float64]
BIAS, VARIANCE, MEAN_SQUARED = MEASURES
AGREEMENT = "agreement"
WHERE = {BIAS: "bias", VARIANCE: "variance"}  # what most of a setting's error is


@dataclass(frozen=True)
class Dial:
    """One setting of a task, with its trainings.

    Attributes:
        number: of the setting, from 1; 1 is the exact reward.
        label: the reward in words.
        extreme: the reward knows nothing of the answer.
        runs: its trainings, one per seed.
        start: the error of the reward on the base model's completions, per training (of other completions each).
        end: the same on the last checkpoint's.
        cost: how fast it judges.
    """

    number: int
    label: str
    extreme: bool
    runs: list[RunResults]
    start: list[Measured]
    end: list[Measured]
    cost: Cost

    @cached_property
    def gains(self) -> list[Floats]:
        """Right answers of the last checkpoint less the base model's, per benchmark: (seeds, problems)."""
        return [
            np.stack(
                [run.correct(run.last, name).mean(axis=1) - run.correct(run.steps[0], name).mean(axis=1)
                 for run in self.runs]
            )
            for name in self.runs[0].benchmarks
        ]  # fmt: skip

    @property
    def gain(self) -> Estimate:
        """The held-out gain, with its interval for new seeds and new problems."""
        return recipe_difference.mean_over_seeds(self.gains)

    @property
    def gain_of_seeds(self) -> Floats:
        """The gain of each seed."""
        each: Floats = np.mean([part.mean(axis=1) for part in self.gains], axis=0)
        return each

    def error(self, measure: str, end: bool = False) -> Estimate:
        """A measure of the reward's error, with its interval for new seeds and new problems.

        Args:
            measure: one of MEASURES, or AGREEMENT, whose interval is for new seeds alone.
            end: of the last checkpoint, else of the base model.
        """
        measured = self.end if end else self.start
        if measure == AGREEMENT:
            return recipe_difference.mean_over_seeds([np.array([[one.agreement] * 2 for one in measured])])
        parts = [np.stack(rows) for rows in zip(*(one.by_problem[measure] for one in measured), strict=True)]
        return recipe_difference.mean_over_seeds(parts, limit=np.inf)

    @property
    def mostly(self) -> str:
        """What most of its error at the start is: bias or variance."""
        return WHERE[max(WHERE, key=lambda name: self.error(name).value)]


@dataclass(frozen=True)
class Studied:
    """A task with its settings, the exact reward first.

    Attributes:
        task: of the study.
        dials: its settings.
        completions: the stored completions of a training's checkpoint on a benchmark.
    """

    task: StudyTask
    dials: list[Dial]
    completions: Callable[[RunResults, int, str], Completions]

    @property
    def exact(self) -> Dial:
        """The exact reward."""
        return self.dials[0]

    @property
    def between(self) -> list[Dial]:
        """The settings without the extremes."""
        return [dial for dial in self.dials if not dial.extreme]

    @property
    def with_error(self) -> list[Dial]:
        """The settings with an error, without the extremes."""
        return self.between[1:]

    @property
    def least_exact(self) -> Dial:
        """Of these, the one with the largest mean squared error at the start."""
        return max(self.with_error, key=lambda dial: dial.error(MEAN_SQUARED).value)

    def dial(self, number: int) -> Dial:
        """A setting by its number, from 1."""
        return self.dials[number - 1]

    def less(self, first: Dial, second: Dial) -> Estimate:
        """The gain of the first less that of the second, paired by seed and problem."""
        return recipe_difference.mean_over_seeds(gain_fit.combined([first.gains, second.gains], [1.0, -1.0]))

    def fitted_dials(self, measures: Sequence[str]) -> list[Dial]:
        """The settings through which a line over these measures goes."""
        return self.dials if tuple(measures) == (AGREEMENT,) else self.between

    def fit(self, *measures: str) -> Fit | None:
        """The gain over measures of the error at the start; the extremes count for the agreement alone."""
        dials = self.fitted_dials(measures)
        errors = {name: np.array([dial.error(name).value for dial in dials]) for name in measures}
        if any(np.isnan(values).any() for values in errors.values()):
            return None
        return gain_fit.fit([dial.gains for dial in dials], errors)

    def knee(self, mostly: str = "") -> tuple[list[Dial], Knee | None]:
        """The error up to which 90 % of the exact reward's gain are kept, and the settings that its position counts in.

        Args:
            mostly: `bias` or `variance`: only settings whose error is mostly that; by default all but the extremes.
        """
        dials = [dial for dial in self.with_error if mostly in ("", dial.mostly)]
        errors = [dial.error(MEAN_SQUARED).value for dial in dials]
        return dials, gain_fit.knee(self.exact.gains, [dial.gains for dial in dials], errors)


def read(task: StudyTask, scale: str, seeds: Sequence[int], results: Path) -> Studied:
    """The stored trainings of a task, and the error of each setting's reward on their completions.

    Args:
        task: of the study.
        scale: demo or full.
        seeds: the training seeds.
        results: of that scale.

    Raises:
        UserError: a training is missing or incomplete, was ended, or was not measured like the others; its problems are
            not those that were graded; or the first setting draws, so that it is not exact.
    """
    setting_runs = _finished_settings(task, scale, seeds, results)
    problems = problems_of([run for one in setting_runs for run in one.runs], ResultsFolder(results).benchmarks)
    names = [f"{task.sweep}@{one.number}" for one in setting_runs]
    runs = [load_run(name, scale) for name in names]
    rewards = [reward_error.function_of(run) for run in runs]
    begun = reward_error.beginning(runs[0])

    def completions(run: RunResults, step: int, name: str) -> Completions:
        return reward_error.completions_of(run, step, name, problems[name], begun)

    def of_all(run: RunResults, step: int) -> list[Completions]:
        return [completions(run, step, name) for name in run.benchmarks]

    # Before anything else is judged, because a reward may remember what it judged.
    first = of_all(setting_runs[0].runs[0], setting_runs[0].runs[0].steps[0])
    costs = [reward_error.cost(run, reward, first) for run, reward in zip(runs, rewards, strict=True)]
    dials = []
    for one, run, reward, cost in zip(setting_runs, runs, rewards, costs, strict=True):
        start = [measure(reward, rewards[0], of_all(trained, trained.steps[0])) for trained in one.runs]
        end = [measure(reward, rewards[0], of_all(trained, trained.last)) for trained in one.runs]
        dials.append(
            Dial(one.number, reward_error.label(run), reward_error.is_extreme(run), one.runs, start, end, cost)
        )
    if any(part.any() for one in dials[0].start for part in one.by_problem[VARIANCE]):
        raise UserError(
            f"{task.sweep}: the first setting should have the exact reward, and has one that draws; correct it",
            code="reward-not-exact",
        )
    return Studied(task, dials, completions)


def _finished_settings(task: StudyTask, scale: str, seeds: Sequence[int], results: Path) -> list[settings.Setting]:
    """The stored trainings of each setting; raises UserError for too few seeds, or a training that was ended."""
    if len(seeds) < FEWEST:
        raise UserError(
            f"{task.sweep}: the study needs {FEWEST} training seeds or more, and found {len(seeds)}: train them with "
            "`snakemake study_reward_accuracy --config seeds='[0,1,2,3,4,5,6,7]'`",
            code="too-few-seeds",
        )
    setting_runs = settings.read_settings(task.sweep, scale, seeds, results)
    if ended := [run.name for one in setting_runs for run in one.runs if not run.evaluated]:
        raise UserError(
            f"{task.sweep}: every training has to reach its end, and {', '.join(ended)} was ended at a sign of "
            "collapse; delete its folder, and train it again without stop_on_collapse",
            code="training-ended-early",
        )
    return setting_runs


def problems_of(runs: Sequence[RunResults], data: Path) -> dict[str, dict[str, Problem]]:
    """The problems of the runs' benchmarks, as rewards see them, by benchmark and name.

    Raises:
        UserError: they are not stored, or are not those that were graded.
    """
    by_benchmark: dict[str, dict[str, Problem]] = {}
    for name in runs[0].benchmarks:
        rows = benchmark.problems(data, name).to_pylist()
        expected = benchmark.problems_hash(data, name)
        for run in runs:
            if others := [s for s in run.steps if run.graded_record(s, name).get("problems_sha256") != expected]:
                raise UserError(
                    f"the rewards need the problems of {name} that {run.name} was graded on, and {data} has others "
                    f"than at step {others[0]}: delete the run's graded folder to grade it again",
                    code="other-problems",
                )
        by_benchmark[name] = {
            row["problem_id"]: problem_from_columns(row["task"], row["answer"], row["meta"]) for row in rows
        }
    return by_benchmark
