"""Experiment trackers, which get the metrics of each step: TensorBoard events always, another if one is chosen.

CROSSZERO_TRACKER=wandb or trackio in the environment chooses one. It must be installed beside the framework; Weights &
Biases stays offline unless WANDB_MODE says otherwise, and Trackio is local by itself.
"""

from __future__ import annotations

import importlib
import math
import os
import shutil
import uuid
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from contracts.steps import stage_folder
from frameworks import tensorboard_events
from system import durable
from system.errors import UserError

VARIABLE, SERVICES, PROJECT = "CROSSZERO_TRACKER", ("wandb", "trackio"), "crosszero"
FOLDER = "tensorboard"


def events_folder(training_log: Path) -> Path:
    """Where a stage's events are, beside the stage's own folder if its training log has one."""
    stage = training_log.parent
    return stage.parent / FOLDER / stage.name if stage.name.startswith(stage_folder("")) else stage / FOLDER


def chosen_tracker() -> str:
    """The chosen tracker, empty for none; raises UserError for one that is unknown or not installed."""
    name = os.environ.get(VARIABLE, "")
    if name and name not in SERVICES:
        sentence = f"{VARIABLE} should be {' or '.join(SERVICES)}, but is '{name}'"
        raise UserError(sentence, code="unknown-name", kind="tracker", name=name)
    if name and find_spec(name) is None:
        sentence = f"{VARIABLE} is {name}, which this environment does not have: install it there, or unset it"
        raise UserError(sentence, code="missing-package", package=name)
    return name


def training_id(events: Path, *, begins: bool) -> str:
    """What tells a tracker that stages, and what is resumed, are one training: drawn where it begins, kept in a file.

    Args:
        events: folder of the stage's events.
        begins: whether the first stage begins anew.
    """
    file = (events if events.name == FOLDER else events.parent) / "training-id"
    if begins or not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        durable.write_text(file, uuid.uuid4().hex)
    return file.read_text()


class Trackers:
    """Writes each step to all of them. One that fails is reported once and left out: the training goes on.

    A training of several stages, or one that was preempted, is one run of the tracker.

    Args:
        events: folder of the stage's events, see events_folder.
        name: of the run.
        steps_before: of the stage, from the start of the run.
        resumed_from: step of the stage that the training continues; 0 begins anew.
    """

    def __init__(self, events: Path, name: str, steps_before: int, resumed_from: int) -> None:
        """Open all."""
        self.steps_before, chosen = steps_before, chosen_tracker()
        if not resumed_from:
            shutil.rmtree(events, ignore_errors=True)
        self.writer: tensorboard_events.Writer | None = tensorboard_events.Writer(events, steps_before + resumed_from)
        self.tracker: Any = None
        if chosen:
            os.environ.setdefault("WANDB_MODE", "offline")
            self.tracker = importlib.import_module(chosen)
            one = {"id": training_id(events, begins=not steps_before + resumed_from)} if chosen == "wandb" else {}
            # Trackio identifies a run by its name alone.
            self.tracker.init(project=PROJECT, name=name, resume="allow", **one)

    def add(self, step: int, row: Mapping[str, float | None]) -> None:
        """Write the metrics of a step of the stage; None is not known."""
        values = {name: float(value) for name, value in row.items() if name != "step" and value is not None}
        step += self.steps_before
        try:
            if self.writer:
                self.writer.add(step, values)
        except OSError as error:
            self.writer = None
            print(f"WARNING: no more TensorBoard events: {error}", flush=True)
        try:
            if self.tracker:
                finite = {name: value for name, value in values.items() if math.isfinite(value)}
                self.tracker.log(finite, step=step)
        except Exception as error:  # a service's errors are many
            self.tracker = None
            print(f"WARNING: no more steps are sent to the tracker: {error}", flush=True)

    def close(self) -> None:
        """End all."""
        if self.writer:
            self.writer.close()
        if self.tracker:
            self.tracker.finish()
