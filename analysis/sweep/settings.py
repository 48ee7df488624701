"""The settings of a sweep with their stored trainings, and the best of them.

The best setting is chosen on half of the problems and reported on the other half, for both halves: on the problems it
was chosen on, it would look better than it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from analysis.compare_recipes.training_runs import problem_half
from analysis.load_results import load_results
from analysis.measures import diagnostics
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference, recipe_difference, training_seeds
from analysis.statistics.checkpoint_difference import mean_of
from analysis.statistics.training_seeds import Recipe
from contracts import ended_training, seeds
from contracts.paths import ResultsFolder
from eval.statistics import Estimate, avg_at_k, paired_difference
from recipes import sweeps
from system.errors import UserError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """One setting of a sweep with its trainings.

    Attributes:
        number: from 1; its run is `<recipe>/<sweep>@<number>`.
        values: by key, as texts.
        runs: one per seed; a training that was ended at a sign of collapse has a log alone.
        collapsed: the evidence, by run, of trainings with a grave sign of collapse.
    """

    number: int
    values: dict[str, str]
    runs: list[RunResults]
    collapsed: dict[str, str]

    @property
    def trained(self) -> Recipe:
        """Its trainings together."""
        return Recipe(self.runs)

    @property
    def evaluated(self) -> bool:
        """Whether every training reached its end, so that there is a mean over seeds."""
        return all(run.evaluated for run in self.runs)

    @property
    def display_name(self) -> str:
        """The values in one line."""
        return ", ".join(
            f"{key.rpartition('.')[2]} {value}" if "." in key else value for key, value in self.values.items()
        )

    @property
    def accuracy(self) -> Estimate:
        """At each seed's last checkpoint, the mean over seeds and benchmarks as a fraction, with its interval."""
        if self.trained.has_several_seeds:
            return training_seeds.accuracy(self.trained, None, self.runs[0].benchmarks)
        run = self.runs[0]
        return mean_of([avg_at_k(run.correct(run.last, name)) for name in run.benchmarks])

    @property
    def gain(self) -> Estimate:
        """Gain over the base model, paired by problem."""
        return training_seeds.gain(self.trained, None, self.runs[0].benchmarks)


def collapse_evidence(results: Path, run: RunResults) -> str:
    """Why a training was ended, or the first grave sign of collapse in its log; empty without one."""
    signs = (sign.text for sign in diagnostics.diagnose(run) if sign.topic == "collapse")
    return ended_training.reason(ResultsFolder(results).run(run.name).scores) or next(signs, "")


def read_settings(name: str, scale: str, numbers: Sequence[int], results: Path) -> list[Setting]:
    """The settings of a sweep with their stored results.

    Args:
        name: `<recipe>/<sweep>`.
        scale: demo or full.
        numbers: the seeds.
        results: of that scale.

    Raises:
        UserError: a training is missing or incomplete, or trainings were not measured in the same way.
    """
    settings: list[Setting] = []
    first: RunResults | None = None
    for number, values in enumerate(sweeps.settings(name, scale), start=1):
        runs = [load_results(results, seeds.run_id(f"{name}@{number}", seed)) for seed in numbers]
        for run in (run for run in runs if run.evaluated):
            first = first or run
            if run.benchmarks != first.benchmarks:
                raise UserError(
                    f"{run.name} and {first.name} should have the same benchmarks, but have others",
                    code="different-benchmarks", run=run.name,
                )  # fmt: skip
            if reasons := checkpoint_difference.obstacles(first, run, run.benchmarks):
                raise UserError(
                    f"{run.name} and {first.name} cannot be compared: {reasons}", code="not-comparable", run=run.name
                )
        texts = {key: sweeps.value_text(value) for key, value in values.items()}
        collapsed = {run.name: evidence for run in runs if (evidence := collapse_evidence(results, run))}
        settings.append(Setting(number, texts, runs, collapsed))
    return settings


def _correct_by_seed(setting: Setting, benchmark: str) -> list[Floats]:
    """Per seed, right or wrong at the last checkpoint, of shape (problems, repeats)."""
    return [run.correct(run.last, benchmark).astype(float) for run in setting.runs]


@dataclass(frozen=True)
class Chosen:
    """The best setting, chosen on half of the problems for the other half.

    Attributes:
        settings: the chosen setting for either half; twice the same, if both halves agree.
        accuracy: on the problems it was not chosen on, as a fraction.
        less_first: by `snakemake compare_recipes`'s tests, less the first setting's; None with one seed.
        difference: the same difference with its interval; with one seed it holds for these trainings alone. None if a
            training of the first setting was ended.
    """

    settings: tuple[Setting, Setting]
    accuracy: Estimate
    less_first: recipe_difference.RecipeResult | None
    difference: Estimate | None


def choose_best(settings: Sequence[Setting]) -> Chosen | None:
    """The best setting without a collapse, or of all that reached their end; None if there is none. See Chosen."""
    able = [setting for setting in settings if setting.evaluated and not setting.collapsed]
    able = able or [setting for setting in settings if setting.evaluated]
    if not able:
        return None
    any_run = able[0].runs[0]
    names = any_run.benchmarks
    sides = {name: np.array([problem_half(problem) for problem in any_run.problems(name)]) for name in names}

    def accuracy_on_half(setting: Setting, side: int) -> float:
        parts = [np.stack(_correct_by_seed(setting, name))[:, sides[name] == side] for name in names]
        return float(np.mean([part.mean() for part in parts if part.size]))

    best = tuple(max(able, key=lambda setting: accuracy_on_half(setting, 1 - side)) for side in (0, 1))
    mixed = {
        name: [
            np.where((sides[name] == 0)[:, None], zero, one)
            for zero, one in zip(*(_correct_by_seed(setting, name) for setting in best), strict=True)
        ]
        for name in names
    }
    if settings[0].trained.has_several_seeds:
        accuracy = recipe_difference.mean_over_seeds(
            [np.stack([run.mean(axis=1) for run in mixed[name]]) for name in names]
        )
    else:
        accuracy = mean_of([avg_at_k(mixed[name][0] > 0) for name in names])
    chosen = (best[0], best[1])
    if not settings[0].evaluated:
        return Chosen(chosen, accuracy, None, None)
    first = {name: _correct_by_seed(settings[0], name) for name in names}
    if settings[0].trained.has_several_seeds:
        line = recipe_difference.compare(first, mixed)[-1]
        return Chosen(chosen, accuracy, line, line.welch.difference)
    gaps = [paired_difference(first[name][0] > 0, mixed[name][0] > 0) for name in names]
    return Chosen(chosen, accuracy, None, mean_of(gaps))
