"""The shape that every adapter has.

An adapter is a module of this package named like its framework, with these functions. It never re-implements training:
the command is the framework's own, and what it writes (checkpoints, logs) is only read.

    check(run)                                   the real parser accepts the rendered command, or UserError
    prepare(run, stage, seed, paths)             writes the training data in the framework's format; returns a Command
    read_log(run, stage, paths, run_name)        the training log of the contract, as rows
    read_rollouts(run, stage, paths, run_name)   completions that were trained on, some of each step, as rows
    export(run, stage, step, paths, output)      one native checkpoint as a Hugging Face folder
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import contracts.gpu_locks
from contracts.errors import UserError
from contracts.run_file import Run, Stage

CPUS_IN_NAME = 16  # without a GPU: what a framework's processes ask of Ray, not what they use


@dataclass(frozen=True)
class Paths:
    """Where one stage's native training reads and writes."""

    problems: Path  # Parquet, the problem table of the training set
    model: Path  # Hugging Face folder that the stage starts from
    work: Path  # native data, checkpoints and logs; survives a failed job


@dataclass(frozen=True)
class Command:
    """A native command, ready to run."""

    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    servers: list[Command] = field(default_factory=list)  # started before it and ended after it
    # metrics of a step from a line of its output; raises UserError where the line tells of a failure that the trainer
    # itself goes on from
    progress: Callable[[str], dict[str, float] | None] = lambda line: None
    resumed_from: int = 0  # step of the native checkpoint that it goes on from
    scratch: Path | None = None  # folder that it makes outside the work folder, removed when it ends


class Adapter(Protocol):
    """What `load` returns."""

    def check(self, run: Run) -> None:
        """Raise UserError unless the framework's own parser accepts every stage of the run."""

    def prepare(self, run: Run, stage: Stage, seed: int, paths: Paths) -> Command:
        """Write the native training data and return the command that trains, going on from the last checkpoint."""

    def read_log(self, run: Run, stage: Stage, paths: Paths, run_name: str) -> list[dict[str, Any]]:
        """Rows of contracts.tables.TRAINING_LOG, one per step."""

    def read_rollouts(self, run: Run, stage: Stage, paths: Paths, run_name: str) -> list[dict[str, Any]]:
        """Rows of contracts.tables.ROLLOUT, up to ROLLOUTS_PER_STEP of each step."""

    def export(self, run: Run, stage: Stage, step: int, paths: Paths, output: Path) -> None:
        """Write the native checkpoint of a step (of the stage) to `output` in Hugging Face format."""


def values(stage: Stage) -> dict[str, Any]:
    """What a stage sets in common words, such as `batch.samples_per_prompt`."""
    groups = {
        "batch": stage.batch,
        "rollout": stage.rollout,
        "optimizer": stage.optimizer,
        "objective": stage.objective,
    }
    return {f"{group}.{key}": value for group, found in groups.items() for key, value in found.items()}


def updates_per_step(run: Run, stage: Stage) -> int:
    """Optimiser steps of one pass over the completions of a step; raises UserError where the batch does not divide."""
    if "prompts_per_update" not in stage.batch or "samples_per_prompt" not in stage.batch:
        missing = "samples_per_prompt" if "prompts_per_update" in stage.batch else "prompts_per_update"
        raise UserError(f"{run.file.name}: {run.scale}.batch.{missing} is needed; add it")
    update = stage.batch["prompts_per_update"]
    step = stage.batch.get("prompts_per_step", update)
    if step % update:
        raise UserError(
            f"{run.file.name}: {run.scale}.batch.prompts_per_step: {step} prompts do not divide into updates of "
            f"{update} (prompts_per_update)"
        )
    return int(step // update)


def devices(run: Run) -> int:
    """GPUs over all nodes; without GPUs each node stands for one, so that several can be tried on the CPU."""
    return max(int(run.hardware["gpus"]), run.hardware.get("nodes", 1))


def gpus(run: Run) -> list[str]:
    """The GPUs of this node that a run takes, as CUDA_VISIBLE_DEVICES names them; see contracts.gpu_locks.take."""
    return contracts.gpu_locks.take(run.hardware["gpus"] // run.hardware.get("nodes", 1), run.name)


def with_ray(run: Run, scratch: Path, words: list[str]) -> list[str]:
    """A command with Ray started over its nodes around it, where it has several; on one it starts Ray by itself."""
    count = run.hardware.get("nodes", 1)
    if count == 1:
        return words
    cpus = run.hardware["cpus"] if run.hardware["gpus"] else CPUS_IN_NAME
    of_node = ["--gpus", str(devices(run) // count), "--cpus", str(cpus)]
    launch = [sys.executable, "-m", "frameworks.ray_cluster", "--nodes", str(count), *of_node]
    return [*launch, "--scratch", str(scratch / "ray"), *words]


def scratch(work: Path) -> Path:
    """Ray's folder, one for each work folder; short, because its sockets' paths may have 107 bytes."""
    digest = hashlib.sha256(str(work.absolute()).encode()).hexdigest()[:10]
    found = Path(tempfile.gettempdir()) / f"cz-{digest}"
    return found if len(str(found)) <= 40 else Path("/tmp") / found.name


def load(framework: str) -> Adapter:
    """The adapter module of a framework."""
    module: Adapter = importlib.import_module(f"frameworks.{framework}.adapter")
    return module
