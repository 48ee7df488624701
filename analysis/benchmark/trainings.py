"""What one training cost and reached, from its stored results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.benchmark import bare_command
from analysis.measures import phases
from contracts import ended_training, provenance, tables
from contracts.paths import ResultsFolder
from contracts.run_file import Run
from contracts.seeds import run_id
from eval.run_settings import benchmarks_as_evaluated
from frameworks.rollout_log import Batch
from frameworks.run_settings import prompts_per_step
from recipes import variants
from recipes.runs import file_content, load_run
from system.errors import UserError

ONCE = ("start-up", "end")  # phases that a training has once
EQUAL = ("framework", "algorithm", "model", "packages", "steps", "completions_per_step")  # of a run's seeds
UNTIL_STOPPED = ("steps", "completions_per_step")  # those of them that a training which was stopped has not had in full
# What a training is, and its times; the rest may be missing where another release, or no `--bare`, wrote it down.
IDENTITY = ("run", "seed", "machine", "gpus", "steps", "phases", "seconds_of_steps", "curve")
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
    def start_up(self) -> float | None:
        """Seconds until the first step begins; None if the training was stopped."""
        return self.curve[0][1] if self.curve else None

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
    return Training(
        run=variants.base_run(name),
        varied={key: variants.value_of(content, key) for key in keys},
        seed=seed,
        framework=run.framework,
        algorithm=run.algorithm,
        model=run.model,
        machine=record.get("machine", "not recorded"),
        gpus=provenance.used_gpus(record, run.hardware["gpus"]),
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
