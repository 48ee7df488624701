"""The trainings of one run on one machine, which differ by their seed alone, and their means."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.benchmark.bare_command import WHOLE
from analysis.benchmark.trainings import NEARLY, ONCE, Training
from analysis.statistics import mean_intervals
from eval.statistics import Estimate

SHARES = ("gpu_utilisation", "padding_share")  # attributes of a training that are at most 1
NUMBER_OF_GPUS = {"hardware.gpus", "hardware.nodes"}  # keys of run files that change it


@dataclass(frozen=True)
class Group:
    """Trainings with everything but the seed in common.

    Attributes:
        name: the run, what was varied, and the machine's letter where there are more of them.
        line: the same without what was varied, be it the number of GPUs.
        trainings: one for each seed.
        letter: of the machine; empty where there is one.
    """

    name: str
    line: str
    trainings: tuple[Training, ...]
    letter: str = ""

    @property
    def hardware(self) -> str:
        """Machine and GPUs in words."""
        return self.trainings[0].hardware

    @property
    def varied_key(self) -> str:
        """What was varied; empty if nothing was."""
        return ", ".join(self.trainings[0].varied)

    @property
    def varied_value(self) -> Any:
        """The value of what was varied; None if nothing, or several settings, were."""
        values = list(self.trainings[0].varied.values())
        return values[0] if len(values) == 1 else None

    def mean_phases(self, once: bool) -> dict[str, float]:
        """Seconds by phase, the mean over trainings: of a step, or of what a training has once."""
        names = dict.fromkeys(name for one in self.trainings for name in one.phases if (name in ONCE) == once)
        return {
            name: float(np.mean([one.phases.get(name, 0.0) / (1 if once else one.steps) for one in self.trainings]))
            for name in names
        }

    @property
    def seconds(self) -> Estimate:
        """From the trainer's start to its end, of those that were not stopped if there are any."""
        ended = [one for one in self.trainings if not one.stop_reason]
        return _mean([one.seconds for one in ended or self.trainings])

    @property
    def start_up(self) -> Estimate | None:
        """Seconds until the first step begins; None if a training was stopped."""
        return _of_known([one.start_up for one in self.trainings])

    @property
    def seconds_of_step(self) -> Estimate:
        """Each training's median step; the first steps, which compile and fill caches, do not move it."""
        return _mean([float(np.median(one.seconds_of_steps)) for one in self.trainings])

    @property
    def seconds_of_first_step(self) -> Estimate:
        """The first step of each training, without start-up."""
        return _mean([one.seconds_of_steps[0] for one in self.trainings])

    @property
    def unnamed_share(self) -> float:
        """What the timers leave of the trainings' time."""
        return float(np.mean([one.phases.get("rest", 0.0) / one.seconds for one in self.trainings]))

    def mean_of(self, attribute: str) -> Estimate | None:
        """The mean of an attribute of the trainings; None if it is not known of all."""
        return _of_known([getattr(one, attribute) for one in self.trainings], 1.0 if attribute in SHARES else math.inf)

    def rate(self, kind: str) -> Estimate | None:
        """Sampled tokens for each second of the phases of a kind."""
        return _of_known([one.rate(kind) for one in self.trainings])

    def seconds_to(self, accuracy: float) -> Estimate | None:
        """Until an accuracy is reached, of those that reach it; None if none does, or a base model has it already."""
        known = [time for one in self.trainings if (time := one.seconds_to(accuracy)) is not None]
        return _mean(known) if known and not self.begins_with(accuracy) else None

    def part_text(self, accuracy: float) -> str:
        """How many of the seeds reach an accuracy, as "4 of 5"; empty if all do."""
        seeds, missing = len(self.trainings), len(self.missing(accuracy))
        return f"{seeds - missing} of {seeds}" if missing else ""

    def missing(self, accuracy: float) -> list[Training]:
        """The trainings that do not reach an accuracy."""
        return [one for one in self.trainings if one.seconds_to(accuracy) is None and not one.begins_with(accuracy)]

    def begins_with(self, accuracy: float) -> bool:
        """Whether a base model has an accuracy already."""
        return any(one.begins_with(accuracy) for one in self.trainings)

    def share(self, part: str) -> Estimate | None:
        """What CrossZero adds to a part, of its whole time; None where the framework's own command was not run."""
        known = [one.parts for one in self.trainings if part in one.parts]
        return mean_intervals.mean([(p[part][0] - p[part][1]) / p[WHOLE][0] for p in known]) if known else None

    @property
    def payers(self) -> int:
        """How many GPUs are paid for; without any, the machine."""
        return max(1, len(self.trainings[0].gpus))


def _mean(values: Sequence[float], most: float = math.inf) -> Estimate:
    """The mean of amounts, none of which can be below 0 or above `most`: neither can its interval."""
    mean = mean_intervals.mean(values)
    return mean if math.isinf(mean.low) else Estimate(mean.value, max(0.0, mean.low), min(most, mean.high))


def _of_known(values: Sequence[float | None], most: float = math.inf) -> Estimate | None:
    known = [value for value in values if value is not None]
    return _mean(known, most) if len(known) == len(values) else None


def groups_of(trainings: Sequence[Training]) -> list[Group]:
    """Groups in the order of their first trainings, those of one run on several machines together."""
    letters = _letters(list(dict.fromkeys(one.hardware for one in trainings)))
    kinds = {_hardware_of_line(one) for one in trainings}
    members: dict[str, dict[str, list[Training]]] = {}
    for one in trainings:
        members.setdefault(one.name, {}).setdefault(one.hardware, []).append(one)
    groups = []
    for name, by_machine in members.items():
        for hardware, own in by_machine.items():
            letter, kind = letters[hardware], _hardware_of_line(own[0])
            line = own[0].run + (f" ({letters.get(kind, kind)})" if len(kinds) > 1 else "")
            groups.append(Group(name + (f" ({letter})" if letter else ""), line, tuple(own), letter))
    return groups


def _letters(machines: Sequence[str]) -> dict[str, str]:
    """A to Z, then AA to ZZ; empty for a machine alone."""
    if len(machines) == 1:
        return {machines[0]: ""}
    return {one: string.ascii_uppercase[i % 26] * (i // 26 + 1) for i, one in enumerate(machines)}


def _hardware_of_line(one: Training) -> str:
    return one.kind_of_hardware if NUMBER_OF_GPUS & one.varied.keys() else one.hardware


def common_accuracy(trainings: Sequence[Training]) -> float:
    """The highest accuracy that is reached, at a checkpoint after its first step, by every training that learns.

    Those learn that get above their base model; where none does, all count, and those that were stopped never do.
    Rounded down to a tenth of a percent, as readers see it, so that `--accuracy` can ask for it again; 0 without any.
    """
    highest = [
        (one, _rounded_down(max(value for step, _, value in one.curve if step))) for one in trainings if one.curve
    ]
    learnt = [accuracy for one, accuracy in highest if not one.begins_with(accuracy)]
    return min(learnt or [accuracy for _, accuracy in highest], default=0.0)


def _rounded_down(accuracy: float) -> float:
    return math.floor(1000 * (accuracy + NEARLY)) / 10 / 100
