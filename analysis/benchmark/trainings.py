"""What one training cost and reached, from its stored results; and the JSON in which machines exchange it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.benchmark import bare_command
from analysis.measures import phases
from contracts import ended_training, provenance, tables
from contracts.paths import ResultsFolder
from contracts.run_file import Run, validate
from contracts.seeds import run_id
from eval.run_settings import benchmarks_as_evaluated
from frameworks.rollout_log import Batch
from frameworks.run_settings import prompts_per_step
from recipes import variants
from recipes.runs import file_content, load_run
from system import durable
from system.errors import UserError
from system.text_safety import one_line

FORMAT = "crosszero benchmark 2"
WRONG = "something is wrong in it"
ONCE = ("start-up", "end")  # phases that a training has once
EQUAL = ("framework", "algorithm", "model", "packages", "steps", "completions_per_step")  # of a run's seeds
UNTIL_STOPPED = ("steps", "completions_per_step")  # those of them that a training which was stopped has not had in full
# What a training is, and its times; the rest may be missing where another release, or no `--bare`, wrote it down.
IDENTITY = ("run", "varied", "seed", "machine", "gpus", "steps", "phases", "seconds_of_steps", "curve")
NEARLY = 1e-9  # 78.7 % by its text and as a mean of benchmarks differ by less


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
            until the first step begins. Empty if the training was stopped.
        host_memory_gb: peak of the training's processes; None where it was not looked at.
        gpu_memory_gb: peak of all its GPUs together; None without a GPU.
        gpu_utilisation: share of busy time in that of the steps where it is known; None without a GPU.
        parts: seconds by part with CrossZero and by the framework's own command; see bare_command.py.
        resumed: whether a stage started up more than once.
        padding_share: of what the updates compute; None where it was not counted.
        stop_reason: the sign of collapse at which it was stopped; empty if it reached its end.
        measurement: number of the measurement on such a machine, of those on one page; not in files.
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
    stop_reason: str = ""
    measurement: int = 1

    @property
    def name(self) -> str:
        """The run with what was varied, as readers see it."""
        return ", ".join([self.run, *(f"{key} {_setting_text(value)}" for key, value in sorted(self.varied.items()))])

    @property
    def identity(self) -> list[Any]:
        """Equal for two records of one training."""
        return [getattr(self, key) for key in IDENTITY]

    @property
    def hardware(self) -> str:
        """Machine and GPUs in words."""
        return self._on([f"{self.gpus.count(name)} × {name}" for name in dict.fromkeys(self.gpus)])

    @property
    def kind_of_hardware(self) -> str:
        """The same without the number of GPUs."""
        return self._on(dict.fromkeys(self.gpus))

    def _on(self, gpus: Iterable[str]) -> str:
        number = [f"measurement {self.measurement}"] * (self.measurement > 1)
        return ", ".join([*gpus, self.machine, *number])

    @property
    def seconds(self) -> float:
        """From the trainer's start to its end."""
        return sum(self.phases.values())

    def rate(self, kind: str) -> float | None:
        """Sampled tokens for each second of the phases of a kind; None where either is not known."""
        seconds = sum(value for name, value in self.phases.items() if phases.kind(name) == kind)
        if seconds <= 0 or self.response_tokens is None:
            return None
        return self.response_tokens * self.completions_per_step * self.steps / seconds

    @property
    def start_up(self) -> float:
        """Seconds until the first step begins."""
        return self.curve[0][1] if self.curve else self.phases.get("start-up", 0.0)

    def begins_with(self, accuracy: float) -> bool:
        """Whether the base model has an accuracy already."""
        return bool(self.curve) and self.curve[0][2] >= accuracy - NEARLY

    def unequal(self, other: Training) -> list[str]:
        """The settings in which this is no further seed of the other's run."""
        stopped = self.stop_reason or other.stop_reason
        keys = [key for key in EQUAL if not (stopped and key in UNTIL_STOPPED)]
        return [key for key in keys if getattr(self, key) != getattr(other, key)]

    def is_apart_from(self, other: Training) -> bool:
        """Whether this is no further seed of the other's measurement, though of its run and on such a machine."""
        alike = (self.name, self.hardware) == (other.name, other.hardware)
        return alike and (self.seed == other.seed or bool(self.unequal(other)))

    def seconds_to(self, accuracy: float) -> float | None:
        """When the line between the checkpoints first reaches an accuracy; None if it never does, or begins with it."""
        if self.begins_with(accuracy):
            return None
        for (_, began, low), (_, ended, high) in pairwise(self.curve):
            if low < accuracy - NEARLY <= high:
                return began + (ended - began) * min(1.0, (accuracy - low) / (high - low))
        return None


def _setting_text(value: Any) -> str:
    """A value as in JSON, but words without quotes."""
    is_word = isinstance(value, str) and value[:1].isalpha() and value not in ("true", "false", "null")
    return str(value) if is_word else json.dumps(value, ensure_ascii=False, sort_keys=True)


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
        UserError: a result is missing, its log has no phases, or its scores are not those of its checkpoints.
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
    scores = tables.read(folder.scores, tables.SCORE, ["step", "benchmark", "protocol", "avg_at_k"]).to_pandas()
    stop_reason = ended_training.reason(folder.scores)
    if not stop_reason:
        _check_scores(scores.dropna(subset="avg_at_k"), folder.scores, run, set(log["step"]))
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
        parts={} if stop_reason else bare_command.seconds_by_part(folder, len(run.stages)),
        resumed=any(phases.starts(stage) > 1 for _, stage in log.groupby("stage")),
        padding_share=_average(log["padding_share"], log["trained_tokens"] / (1 - log["padding_share"])),  # positions
        stop_reason=stop_reason,
    )


def _check_scores(scores: pd.DataFrame, file: Path, run: Run, steps: set[int]) -> None:
    """Raise UserError unless scores are of the base model and checkpoints at some of these steps, on all benchmarks."""
    rows = set(scores[["step", "benchmark", "protocol"]].itertuples(index=False, name=None))
    evaluated, protocol = {step for step, _, _ in rows}, run.evaluation["protocol"]
    expected = {(step, name, protocol) for step in evaluated for name in run.evaluation["benchmarks"]}
    if rows != expected or not {0} < evaluated <= {0, *steps}:
        raise UserError(
            f"{file} should have scores of the base model and of checkpoints up to step {max(steps)}, all on "
            f"{', '.join(run.evaluation['benchmarks'])} by {protocol}, but has not: delete it, and evaluate again",
            code="other-scores",
            path=str(file),
        )


def _peak(column: pd.Series) -> float | None:
    return None if column.isna().all() else float(column.max())


def _average(shares: pd.Series, weights: pd.Series) -> float | None:
    """Of the steps where both are known; None if none are."""
    known = shares.notna() & np.isfinite(weights)
    return float(np.average(shares[known], weights=weights[known])) if weights[known].sum() > 0 else None


def write(trainings: Sequence[Training], file: Path) -> None:
    """Write trainings for another machine's `--with`."""
    rows = [{key: value for key, value in asdict(one).items() if key != "measurement"} for one in trainings]
    durable.write_text(file, json.dumps({"format": FORMAT, "trainings": rows}, indent=1) + "\n")


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
    settings and have other seeds. Else they are a measurement of their own, which gets a number.

    Raises:
        UserError: they were evaluated otherwise, or seeds of a run differ in more than that.
    """
    for one in (one for each in (own, *others) for one in each):
        check_evaluation(one, own[0].scale, own[0].benchmarks)
    every = list(own)
    for number, theirs in enumerate(others, 2):
        new = [one for one in theirs if all(one.identity != other.identity for other in every)]
        apart = {one.machine for one in new if any(map(one.is_apart_from, every))}
        every += [replace(one, measurement=number) if one.machine in apart else one for one in new]
    _check_seeds(every)
    return every


def _check_seeds(trainings: Sequence[Training]) -> None:
    """Raise UserError where the trainings of a run on a machine differ in more than their seed, or not in that."""
    firsts, before = dict[tuple[str, str], Training](), set[tuple[str, str, int]]()
    for one in sorted(trainings, key=lambda one: bool(one.stop_reason)):  # those with all steps are compared first
        if (one.name, one.hardware, one.seed) in before:
            raise UserError(
                f"each seed of {one.name} should be there once, but seed {one.seed} is there twice: leave one out",
                code="repeated-seed",
                seed=one.seed,
            )
        before.add((one.name, one.hardware, one.seed))
        first = firsts.setdefault((one.name, one.hardware), one)
        for key in one.unequal(first):
            raise UserError(
                f"the seeds of {one.name} should differ in nothing else, but for seed {first.seed} {key} is "
                f"{getattr(first, key)}, for seed {one.seed} {getattr(one, key)}: train one of them again, or leave it "
                "out",
                code="unequal-seeds",
                key=key,
            )


def read(file: Path) -> list[Training]:
    """The trainings of another machine's benchmark.json; raises UserError if it is no such file, or contradictory."""
    try:
        text = file.read_text(encoding="utf-8")
        content = _visible(json.loads(text, parse_constant=_number, parse_float=_number, parse_int=_number))
        if content["format"] != FORMAT:
            raise ValueError(f"it has the format {content['format']}")
        validate(content, "benchmark", WRONG)
        trainings = [_training(row) for row in content["trainings"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, UserError) as error:
        why = str(error).split(f"; {WRONG}: ")[0] if isinstance(error, UserError | ValueError) else "it is none"
        raise UserError(
            f"{file} should be the benchmark.json of another machine ({FORMAT}), but {why}: give the file that "
            "crosszero benchmark wrote there",
            code="not-a-benchmark",
            path=str(file),
        ) from None
    try:
        _check_seeds(trainings)
    except UserError as error:
        raise error.within(str(file)) from None
    return trainings


def _training(row: Mapping[str, Any]) -> Training:
    """A training of a file that keeps to the schema; raises ValueError where its values contradict each other."""
    known = {one.name for one in fields(Training)} - {"measurement"}
    values = {key: row[key] for key in known & row.keys()}
    one = Training(**values | {"curve": [tuple(point) for point in row["curve"]]})
    steps, times = [point[0] for point in one.curve], [point[1] for point in one.curve]
    rates = [one.rate(kind) or 0.0 for kind in phases.KINDS]
    for holds, why in (
        (len(one.curve) == 0 if one.stop_reason else len(one.curve) > 1, "a curve with a checkpoint, or a stop_reason"),
        (all(low < high for each in (steps, times) for low, high in pairwise(each)), "a curve that goes on in time"),
        (len(one.seconds_of_steps) == one.steps >= max(steps, default=0), "seconds for each step, and no more steps"),
        (one.seconds > 0 and max(rates) < 1e15, "seconds above 0, and fewer than 1e15 tokens in each"),
    ):
        if not holds:
            raise ValueError(f"{one.name}, seed {one.seed}, should have {why}, and has not")
    return one


def _number(text: str) -> int | float:
    """A number of JSON; raises ValueError for NaN and for what is too large to be drawn."""
    if not abs(value := float(text)) < 1e100:
        raise ValueError(f"it has the number {text:.20}")
    return int(text) if text.lstrip("-").isdecimal() else value


def _visible(value: Any) -> Any:
    """Its texts as a page can show them in a line."""
    if isinstance(value, dict):
        return {one_line(key): _visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_visible(item) for item in value]
    return one_line(value) if isinstance(value, str) else value
