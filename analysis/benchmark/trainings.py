"""What one training cost and reached, from its stored results; and the JSON in which machines exchange it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.benchmark import bare_command
from analysis.measures import phases
from contracts import provenance, tables
from contracts.paths import ResultsFolder
from contracts.run_file import validate
from contracts.seeds import run_id
from eval.run_settings import benchmarks_as_evaluated
from frameworks.rollout_log import Batch
from frameworks.run_settings import prompts_per_step
from recipes import variants
from recipes.runs import file_content, load_run
from system import durable
from system.errors import UserError
from system.text_safety import visible

FORMAT = "crosszero benchmark 2"
WRONG = "something is wrong in it"
ONCE = ("start-up", "end")  # phases that a training has once
EQUAL = ("framework", "algorithm", "model", "steps", "completions_per_step", "packages")  # of a run's seeds


@dataclass(frozen=True)
class Training:
    """One training.

    Attributes:
        run: its name, without what was varied.
        varied: by key, its values of the settings in which the trainings of the benchmark differ from run files.
        seed: of the training.
        framework: its folder in frameworks/.
        algorithm: as in the run file.
        model: the base model's name.
        machine: processor, cores and memory.
        gpus: names of the GPUs that it used, of all nodes; empty without.
        commit: of this project.
        packages: versions, by name.
        scale: of the run file.
        benchmarks: of the accuracy, each with its protocol and what the run overrides of that.
        steps: of all stages.
        completions_per_step: prompts times completions of each, the mean over steps.
        response_tokens: mean length of all completions; None where it is not logged.
        phases: seconds of all steps by phase.
        seconds_of_steps: of each step, without start-up and end.
        curve: step, seconds from the first start to the end of that step (evaluations are not in it), and the accuracy
            of its checkpoint on held-out problems, the mean over benchmarks; of the base model, step 0, the seconds
            until the first step begins.
        host_memory_gb: peak of the training's processes; None where it was not looked at.
        gpu_memory_gb: peak of all its GPUs together; None without a GPU.
        gpu_utilisation: share of busy time in that of the steps where it is known; None without a GPU.
        parts: seconds by part with CrossZero and by the framework's own command; see bare_command.py.
        resumed: whether a stage started up more than once.
        padding_share: of what the updates compute; None where it was not counted.
    """

    run: str
    varied: dict[str, Any]
    seed: int
    framework: str
    algorithm: str
    model: str
    machine: str
    gpus: list[str]
    commit: str
    packages: dict[str, str]
    scale: str
    benchmarks: list[str]
    steps: int
    completions_per_step: float
    response_tokens: float | None
    phases: dict[str, float]
    seconds_of_steps: list[float]
    curve: list[tuple[int, float, float]]
    host_memory_gb: float | None
    gpu_memory_gb: float | None
    gpu_utilisation: float | None
    parts: dict[str, list[float]] = field(default_factory=dict)
    resumed: bool = False
    padding_share: float | None = None

    @property
    def name(self) -> str:
        """The run with what was varied, as readers see it."""
        settings = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in self.varied.items())
        return f"{self.run}, {settings}" if settings else self.run

    @property
    def hardware(self) -> str:
        """Machine and GPUs in words."""
        return ", ".join([f"{self.gpus.count(name)} × {name}" for name in dict.fromkeys(self.gpus)] + [self.machine])

    @property
    def kind_of_hardware(self) -> str:
        """The same without the number of GPUs."""
        return ", ".join([*dict.fromkeys(self.gpus), self.machine])

    @property
    def seconds(self) -> float:
        """From the trainer's start to its end."""
        return sum(self.phases.values())

    def rate(self, kind: str) -> float | None:
        """Sampled tokens for each second of the phases of a kind; None where either is not known."""
        seconds = sum(value for name, value in self.phases.items() if phases.kind(name) == kind)
        if not seconds or self.response_tokens is None:
            return None
        return self.response_tokens * self.completions_per_step * self.steps / seconds

    @property
    def start_up(self) -> float:
        """Seconds until the first step begins."""
        return self.curve[0][1]

    def begins_with(self, accuracy: float) -> bool:
        """Whether the base model has an accuracy already."""
        return self.curve[0][2] >= accuracy

    def is_apart_from(self, other: Training) -> bool:
        """Whether this is no further seed of the other's measurement, though of its run and on such a machine."""
        alike = (self.name, self.hardware) == (other.name, other.hardware)
        return alike and (self.seed == other.seed or any(getattr(self, key) != getattr(other, key) for key in EQUAL))

    def seconds_to(self, accuracy: float) -> float | None:
        """When the line between the checkpoints first reaches an accuracy; None if it never does, or begins with it."""
        if self.begins_with(accuracy):
            return None
        for (_, began, low), (_, ended, high) in pairwise(self.curve):
            if low < accuracy <= high:
                return began + (ended - began) * (accuracy - low) / (high - low)
        return None


def read_trainings(results: Path, names: Sequence[str], seeds: Sequence[int], scale: str) -> list[Training]:
    """Read the trainings of some runs, or variants of runs, with each seed; raises UserError as `_read_training`."""
    keys = sorted({key for name in names if variants.is_variant(name) for key in variants.settings(name)})
    return [_read_training(results, name, seed, scale, keys) for name in names for seed in seeds]


def _read_training(results: Path, name: str, seed: int, scale: str, keys: Sequence[str]) -> Training:
    """Read one training.

    Args:
        results: of the scale.
        name: of the run or of a variant of it.
        seed: of the training.
        scale: of the run file.
        keys: whose values are to be told.

    Raises:
        UserError: a result is missing, or its log has no phases.
    """
    folder = ResultsFolder(results).run(run_id(name, seed))
    run = load_run(name, scale)
    content = file_content(name, run.file, scale)[scale]
    log = tables.read(folder.training_log, tables.TRAINING_LOG).to_pandas()
    if log.empty or log["phases"].isna().any():
        raise UserError(
            f"{folder.training_log} should have the phases of every step, but lacks those of "
            f"{log['phases'].isna().sum()} of {len(log)} steps: move it away, and train again",
            code="log-without-phases",
            path=str(folder.training_log),
        )
    record = provenance.read(folder.stage(1) / "training_log.parquet")
    scores = tables.read(folder.scores, tables.SCORE, ["step", "avg_at_k"]).to_pandas()
    each = [{phase["name"]: phase["seconds"] for phase in row} for row in log["phases"]]
    in_steps = [sum(seconds for name, seconds in row.items() if name not in ONCE) for row in each]
    seconds = pd.Series([sum(row.values()) for row in each], index=log.index)
    past = dict(zip(log["step"], accumulate(seconds), strict=True))
    ends = {step: row.get("end", 0.0) for step, row in zip(log["step"], each, strict=True)}
    by_stage = {stage.number: prompts_per_step(run, stage) * stage.batch["samples_per_prompt"] for stage in run.stages}
    completions, lengths = log["stage"].map(by_stage), log["response_length_mean"]
    resampled = log["stage"].map({stage.number: Batch.of_stage(stage).resampled for stage in run.stages})
    known = lengths.notna() & ~resampled  # completions that were sampled in vain are not logged
    gpus = [device for device in record.get("devices", []) if not device.startswith("cpu ")]  # of the whole machine
    used = record.get("gpus", run.hardware["gpus"]) if gpus else 0
    return Training(
        run=variants.base_run(name),
        varied={key: variants.value_of(content, key) for key in keys},
        seed=seed,
        framework=run.framework,
        algorithm=run.algorithm,
        model=run.model,
        machine=record.get("machine", "not recorded"),
        gpus=[gpus[number % len(gpus)] for number in range(used)],
        commit=str(record.get("git_commit") or ""),
        packages=record.get("packages", {}),
        scale=scale,
        benchmarks=benchmarks_as_evaluated(run),
        steps=len(log),
        completions_per_step=float(completions.mean()),
        response_tokens=float(np.average(lengths[known], weights=completions[known])) if known.any() else None,
        phases=phases.seconds(log),
        seconds_of_steps=in_steps,
        curve=[
            (int(step), float(past[step] - ends[step]) if step else each[0].get("start-up", 0.0), float(accuracy))
            for step, accuracy in scores.groupby("step")["avg_at_k"].mean().items()
        ],
        host_memory_gb=_peak(log["host_memory_gb"]),
        gpu_memory_gb=_peak(log["gpu_memory_gb"]),
        gpu_utilisation=_average(log["gpu_utilisation"], seconds),
        parts=bare_command.seconds_by_part(folder, len(run.stages)),
        resumed=any(phases.starts(stage) > 1 for _, stage in log.groupby("stage")),
        padding_share=_average(log["padding_share"], log["trained_tokens"] / (1 - log["padding_share"])),  # positions
    )


def _peak(column: pd.Series) -> float | None:
    return None if column.isna().all() else float(column.max())


def _average(shares: pd.Series, weights: pd.Series) -> float | None:
    """Of the steps where both are known; None if none are."""
    known = shares.notna() & np.isfinite(weights)
    return float(np.average(shares[known], weights=weights[known])) if weights[known].sum() > 0 else None


def write(trainings: Sequence[Training], file: Path) -> None:
    """Write trainings for another machine's `--with`."""
    content = {"format": FORMAT, "trainings": [asdict(training) for training in trainings]}
    durable.write_text(file, json.dumps(content, indent=1) + "\n")


def check_evaluation(one: Training, scale: str, benchmarks: Sequence[str]) -> None:
    """Raise UserError unless a training of another machine was evaluated like those that it is put beside.

    Args:
        one: the training.
        scale: of the others.
        benchmarks: of the others, as in a Training.
    """
    if (one.scale, sorted(one.benchmarks)) != (scale, sorted(benchmarks)):
        raise UserError(
            f"the trainings should have the same scale and evaluation as these ({scale}: {', '.join(benchmarks)}), but "
            f"{one.name} has {one.scale}: {', '.join(one.benchmarks)}; evaluate both alike",
            code="other-benchmark",
        )


def put_together(own: Sequence[Training], *others: Sequence[Training]) -> list[Training]:
    """Own trainings and those of other files, to be shown on one page; one that is among several is there once.

    Trainings of another file are further seeds of the same measurement if they ran on such a machine with the same
    settings and have other seeds. Else they are a measurement of their own, whose machine gets its number.

    Raises:
        UserError: they were evaluated otherwise, or seeds of a run differ in more than that.
    """
    every = list(own)
    for number, theirs in enumerate(others, 2):
        new = [one for one in theirs if one not in every]
        apart = {one.machine for one in new if any(map(one.is_apart_from, every))}
        every += [
            replace(one, machine=f"{one.machine}, measurement {number}") if one.machine in apart else one for one in new
        ]
    for one in every:
        check_evaluation(one, every[0].scale, every[0].benchmarks)
    _check_seeds(every)
    return every


def _check_seeds(trainings: Sequence[Training]) -> None:
    """Raise UserError where the trainings of a run on a machine differ in more than their seed."""
    firsts: dict[tuple[str, str], Training] = {}
    for one in trainings:
        first = firsts.setdefault((one.name, one.hardware), one)
        for key in EQUAL:
            values = [str(getattr(training, key)) for training in (first, one)]
            if values[0] != values[1]:
                raise UserError(
                    f"the seeds of {one.name} should differ in nothing else, but for seed {first.seed} {key} is "
                    f"{values[0]}, for seed {one.seed} {values[1]}: train one of them again, or leave it out",
                    code="unequal-seeds",
                    key=key,
                )


def read(file: Path) -> list[Training]:
    """The trainings of another machine's benchmark.json; raises UserError if it is no such file."""
    try:
        content = _visible(json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant))
        if content["format"] != FORMAT:
            raise ValueError(f"it has the format {content['format']}")
        validate(content, "benchmark", WRONG)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, UserError) as error:
        why = str(error).split(f"; {WRONG}: ")[0] if isinstance(error, UserError | ValueError) else "it is none"
        raise UserError(
            f"{file} should be the benchmark.json of another machine ({FORMAT}), but {why}: give the file that "
            "crosszero benchmark wrote there",
            code="not-a-benchmark",
            path=str(file),
        ) from None
    known = {one.name for one in fields(Training)}
    rows = [{key: row[key] for key in known & row.keys()} for row in content["trainings"]]
    return [Training(**row | {"curve": [tuple(point) for point in row["curve"]]}) for row in rows]


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it has {name}")


def _visible(value: Any) -> Any:
    """Its texts as a page can show them."""
    if isinstance(value, dict):
        return {visible(key): _visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_visible(item) for item in value]
    return visible(value) if isinstance(value, str) else value
