"""The settings of a sweep with their stored trainings, and the best of them.

The best setting is chosen on half of the problems by some of the seeds, and reported on the other half for another
seed: where it was chosen, it would look better than it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from analysis.load_results import load_results
from analysis.measures import diagnostics
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference, recipe_difference, training_seeds
from analysis.statistics.checkpoint_difference import mean_of
from analysis.statistics.training_seeds import Recipe
from contracts import ended_training, seeds
from contracts.paths import ResultsFolder
from eval.statistics import Estimate, avg_at_k, clusters, mean_difference, mean_over_problems
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
        return mean_of([avg_at_k(run.correct(run.last, name), clusters=run.clusters(name)) for name in run.benchmarks])

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
        scale: one of contracts.run_file.SCALES.
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


@dataclass(frozen=True)
class Chosen:
    """The best setting, chosen apart from what it is reported on.

    With several seeds each is left out in turn: the setting is chosen by the other seeds on half of the problems, and
    reported for that seed on the other half. So neither the luck of problems nor that of seeds counts as a gain. With
    one seed only the problems are apart.

    Attributes:
        choices: the chosen setting for each seed and half.
        accuracy: where it was not chosen, as a fraction.
        less_first: by `snakemake compare_recipes`'s tests, less the first setting's; None with one seed.
        difference: the same difference with its interval; with one seed it holds for these trainings alone. None if a
            training of the first setting was ended.
    """

    choices: tuple[Setting, ...]
    accuracy: Estimate
    less_first: recipe_difference.RecipeResult | None
    difference: Estimate | None

    @property
    def setting(self) -> Setting:
        """The one that was chosen most often; of several, the first."""
        numbers = [choice.number for choice in self.choices]
        return min(self.choices, key=lambda choice: (-numbers.count(choice.number), choice.number))

    @property
    def times(self) -> int:
        """How often it was chosen."""
        return sum(choice.number == self.setting.number for choice in self.choices)


def choose_best(settings: Sequence[Setting]) -> Chosen | None:
    """The best setting without a collapse, or of all that reached their end; None if there is none. See Chosen."""
    able = [setting for setting in settings if setting.evaluated and not setting.collapsed]
    able = able or [setting for setting in settings if setting.evaluated]
    if not able:
        return None
    any_run, seeds_of_each = able[0].runs[0], len(able[0].runs)
    names = any_run.benchmarks
    sides = {name: any_run.halves(name) for name in names}
    right = {
        (setting.number, name): np.stack([run.correct(run.last, name).astype(float) for run in setting.runs])
        for setting in settings
        if setting.evaluated
        for name in names
    }

    def best(left_out: int, side: int) -> Setting:
        kept = [seed for seed in range(seeds_of_each) if seed != left_out or seeds_of_each == 1]

        def accuracy(setting: Setting) -> float:
            parts = [right[setting.number, name][kept][:, sides[name] != side] for name in names]
            return float(np.mean([part.mean() for part in parts if part.size]))

        return max(able, key=accuracy)

    choices = [[best(seed, side) for side in (0, 1)] for seed in range(seeds_of_each)]

    def values(name: str, pair: Sequence[Setting], seed: int) -> Floats:
        """Right answers of a seed, one row per cluster of problems: of one setting on each half."""
        zero, one = (right[setting.number, name][seed] for setting in pair)
        return clusters.linearised(np.where((sides[name] == 0)[:, None], zero, one), any_run.clusters(name))

    apart = {name: [values(name, pair, seed) for seed, pair in enumerate(choices)] for name in names}
    if seeds_of_each > 1:
        accuracy = recipe_difference.mean_over_seeds(
            [np.stack([run.mean(axis=1) for run in apart[name]]) for name in names]
        )
    else:
        accuracy = mean_of([mean_over_problems(apart[name][0].mean(axis=1)) for name in names])
    flat, base = tuple(choice for pair in choices for choice in pair), settings[0]
    if not base.evaluated:
        return Chosen(flat, accuracy, None, None)
    first = {name: [values(name, (base, base), seed) for seed in range(seeds_of_each)] for name in names}
    if seeds_of_each > 1:
        line = recipe_difference.compare(first, apart)[-1]
        return Chosen(flat, accuracy, line, line.interval())
    gaps = [mean_difference((apart[name][0] - first[name][0]).mean(axis=1)) for name in names]
    return Chosen(flat, accuracy, None, mean_of(gaps))
