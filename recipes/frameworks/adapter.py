"""The shape that every adapter has.

An adapter is a module of this package named like its framework, with these functions. It never re-implements training:
the command is the framework's own, and what it writes (checkpoints, logs) is only read.

    check(run)                                   the real parser accepts the rendered command, or UserError
    prepare(run, stage, seed, paths)             writes the training data in the framework's format; returns a Command
    read_log(paths, run_name, stage)             the training log of the contract, as rows
    export(run, stage, step, paths, output)      one native checkpoint as a Hugging Face folder
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from contracts.run_file import Run, Stage


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
    progress: Callable[[str], dict[str, float] | None] = lambda line: (
        None
    )  # metrics of a step from a line of its output
    resumed_from: int = 0  # step of the native checkpoint that it goes on from


class Adapter(Protocol):
    """What `load` returns."""

    def check(self, run: Run) -> None:
        """Raise UserError unless the framework's own parser accepts every stage of the run."""

    def prepare(self, run: Run, stage: Stage, seed: int, paths: Paths) -> Command:
        """Write the native training data and return the command that trains, going on from the last checkpoint."""

    def read_log(self, paths: Paths, run_name: str, stage: Stage) -> list[dict[str, Any]]:
        """Rows of contracts.tables.TRAINING_LOG, one per step."""

    def export(self, run: Run, stage: Stage, step: int, paths: Paths, output: Path) -> None:
        """Write the native checkpoint of a step (of the stage) to `output` in Hugging Face format."""


def load(framework: str) -> Adapter:
    """The adapter module of a framework."""
    module: Adapter = importlib.import_module(f"recipes.frameworks.{framework}")
    return module
