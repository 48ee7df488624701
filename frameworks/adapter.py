"""What an adapter is, and what all adapters share.

Each folder here with an `adapter.py` is a framework; its `ADAPTER` is an `Adapter`. An adapter turns a run into the
framework's own command, has it checked by the framework's own parser, and reads what training wrote (checkpoints,
logs). It never re-implements training.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import json
import os
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from contracts import gpu_locks
from contracts.errors import UserError
from contracts.run_file import ROOT, Run, Stage, framework_names
from frameworks.memory import CheckpointSize, Memory
from frameworks.reward_hook import FAILURE
from recipes import rewards
from tasks import prompts

CPUS_IN_NAME = 16  # without a GPU: what a framework's processes request from Ray, not what they use


@dataclass(frozen=True)
class Paths:
    """Where one stage's native training reads and writes."""

    problems: Path  # Parquet, the problem table of the training set
    model: Path  # Hugging Face folder that the stage starts from
    work: Path  # native data, checkpoints and logs; survives a failed job

    @property
    def native(self) -> Path:
        """What the framework itself writes."""
        return self.work / "native"


@dataclass(frozen=True)
class Command:
    """A native command, ready to run."""

    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    servers: list[Command] = field(default_factory=list)  # started before it and ended after it
    scratch: Path | None = None  # folder outside the work folder, removed when the command ends


class Adapter(ABC):
    """One framework."""

    # The framework's name of a metric -> a column of contracts.tables.TRAINING_LOG, or one of these: `seconds` and
    # `tokens` of the step, and what is only checked to be a number (`loss`, `critic_loss`, …). The framework uses the
    # same names in its log and in the line that it prints for a step.
    metrics: ClassVar[Mapping[str, str]]
    # Bytes of a native checkpoint, for estimates of disk space.
    checkpoint_size: ClassVar[CheckpointSize]

    def check(self, run: Run) -> None:
        """Raise UserError unless prompt, rewards and the framework's own parser accept every stage of the run."""
        prompts.load(run.prompt)
        for reward in run.rewards:
            try:
                rewards.load([reward])
            except (ImportError, AttributeError) as error:
                raise UserError(f"{run.file.name}: rewards: {reward['function']} cannot be loaded ({error})") from None
        for stage in run.stages:
            self.check_stage(run, stage)

    @abstractmethod
    def check_stage(self, run: Run, stage: Stage) -> None:
        """Raise UserError unless the framework's own parser accepts the stage's command."""

    @abstractmethod
    def newest_checkpoint(self, run: Run, stage: Stage, paths: Paths) -> int:
        """The step (of the stage) of the newest complete native checkpoint, 0 for none; newer remains are deleted."""

    @abstractmethod
    def prepare(self, run: Run, stage: Stage, seed: int, paths: Paths) -> Command:
        """Write the native training data, and return the command that trains from the newest checkpoint to the end."""

    @abstractmethod
    def printed(self, line: str) -> dict[str, float] | None:
        """The metrics, under the framework's names, in a line of output that ends a step; None for another line."""

    @abstractmethod
    def logged(self, run: Run, stage: Stage, paths: Paths) -> dict[int, dict[str, float]]:
        """By step of the stage, the metrics that the framework logged, under its own names; NaN where it has none.

        Where a resumed training repeated a step, the later counts. What cannot be read is reported and left out.
        """

    def columns(self, stage: Stage, values: Mapping[str, float]) -> dict[str, float]:
        """The metrics of one step under our names; a framework adds here what follows from several of its own."""
        return {ours: values[native] for native, ours in self.metrics.items() if native in values}

    def progress(self, stage: Stage, line: str) -> dict[str, float] | None:
        """The metrics of a step under our names from a line of output; None for another line.

        Raises:
            UserError: the line reports a failure after which the trainer itself would continue.
        """
        if FAILURE in line:
            raise UserError(f"was ended: {line[line.index(FAILURE) :].strip()}")
        values = self.printed(line)
        return None if values is None else self.columns(stage, values)

    @abstractmethod
    def export(self, run: Run, stage: Stage, step: int, paths: Paths, output: Path) -> None:
        """Write the native checkpoint of a step (of the stage) to `output` in Hugging Face format."""

    @abstractmethod
    def memory(self, run: Run, stage: Stage, gpus: int, parameters: float) -> Memory:
        """What training a model of so many parameters on so many GPUs keeps in their memory."""


def load(framework: str) -> Adapter:
    """The adapter of a framework; raises UserError for an unknown one."""
    if framework not in framework_names():
        raise UserError(f"there is no framework '{framework}'; there are: {', '.join(framework_names())}")
    adapter: Adapter = importlib.import_module(f"frameworks.{framework}.adapter").ADAPTER
    return adapter


def values(stage: Stage) -> dict[str, Any]:
    """The stage's settings that have common names, such as `batch.samples_per_prompt`."""
    groups = {
        "batch": stage.batch,
        "rollout": stage.rollout,
        "optimizer": stage.optimizer,
        "objective": stage.objective,
    }
    return {f"{group}.{key}": value for group, found in groups.items() for key, value in found.items()}


def refuse(run: Run, key: str, text: str) -> UserError:
    """A UserError about a key of the run's scale."""
    return UserError(f"{run.file.name}: {run.scale}.{key}{text}")


def updates_per_step(run: Run, stage: Stage) -> int:
    """Optimiser steps of one pass over the completions of a step; raises UserError where the batch does not divide."""
    for key in ("prompts_per_update", "samples_per_prompt"):
        if key not in stage.batch:
            raise refuse(run, f"batch.{key}", " is needed; add it")
    update = stage.batch["prompts_per_update"]
    step = stage.batch.get("prompts_per_step", update)
    if step % update:
        raise refuse(
            run,
            "batch.prompts_per_step",
            f": {step} prompts do not divide into updates of {update} (prompts_per_update)",
        )
    return int(step // update)


def check_batch(run: Run, stage: Stage, devices: int) -> int:
    """Forward passes of each device in one update.

    Raises:
        UserError: the prompts of a step do not divide into updates, or the completions of an update into passes.
    """
    updates_per_step(run, stage)
    if "samples_per_device" not in stage.batch:
        raise refuse(run, "batch.samples_per_device", f" is needed by {run.framework}; add it")
    prompts, group = stage.batch["prompts_per_update"], stage.batch["samples_per_prompt"]
    at_once = stage.batch["samples_per_device"] * devices
    if (prompts * group) % at_once:
        raise refuse(
            run,
            "batch.prompts_per_update",
            f": {prompts} prompts × {group} samples = {prompts * group} completions do not divide into {devices} "
            f"devices × {stage.batch['samples_per_device']} samples_per_device = {at_once}",
        )
    return int(prompts * group // at_once)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, if there is a near one."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def devices(run: Run) -> int:
    """GPUs over all nodes; without GPUs each node stands for one, so that several can be tried on the CPU."""
    return max(int(run.hardware["gpus"]), int(run.hardware.get("nodes", 1)))


def gpus(run: Run) -> list[str]:
    """The GPUs of this node that a run takes, as CUDA_VISIBLE_DEVICES names them; see contracts.gpu_locks.take."""
    return gpu_locks.take(run.hardware["gpus"] // run.hardware.get("nodes", 1), run.name)


def environment(run: Run) -> dict[str, str]:
    """Environment variables of every training: its rewards, and nothing fetched from or reported to the network."""
    return {
        **rewards.environment(run.rewards),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }


def ray_environment(*folders: Path) -> dict[str, str]:
    """Environment variables of a training over Ray, whose processes import from the project and these folders."""
    path = os.pathsep.join([*map(str, (ROOT, *folders)), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {
        "PYTHONPATH": path,  # Ray's processes do not start where the trainer does
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_COLOR_PREFIX": "0",
        "RAY_DEDUP_LOGS": "0",
    }


# One process of each kind, on a machine that it shares with others: one thread, and Ray's processes at its priority.
ONE_CPU = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",  # Snakemake sets it to the job's cores, and its threads would wait for each other
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "RAY_worker_niceness": "0",  # Ray's default, 15, gives way to every other process
}


def with_ray(run: Run, scratch: Path, words: list[str]) -> list[str]:
    """A command, on several nodes inside the one that starts Ray on them; on one node it starts Ray by itself."""
    count = run.hardware.get("nodes", 1)
    if count == 1:
        return words
    cpus = run.hardware["cpus"] if run.hardware["gpus"] else CPUS_IN_NAME
    of_node = ["--gpus", str(devices(run) // count), "--cpus", str(cpus)]
    launch = [sys.executable, "-m", "frameworks.ray_cluster", "--nodes", str(count), *of_node]
    return [*launch, "--scratch", str(scratch / "ray"), *words]


def empty_scratch(work: Path) -> Path:
    """Ray's folder, one for each work folder, emptied; short, because its sockets' paths may have 107 bytes."""
    digest = hashlib.sha256(str(work.absolute()).encode()).hexdigest()[:10]
    found = Path(tempfile.gettempdir()) / f"cz-{digest}"
    found = found if len(str(found)) <= 40 else Path("/tmp") / found.name
    shutil.rmtree(found, ignore_errors=True)
    found.mkdir(parents=True)
    return found


def newest_complete(checkpoints: Mapping[int, Sequence[Path]], complete: Callable[[int], bool]) -> int:
    """The newest complete checkpoint's step, 0 for none; the folders of newer ones, which a kill cut off, are deleted.

    Args:
        checkpoints: by step, all folders that belong to it.
        complete: whether a step's checkpoint was written to its end.
    """
    newest = max(filter(complete, checkpoints), default=0)
    for step, folders in checkpoints.items():
        for folder in folders if step > newest else ():
            shutil.rmtree(folder, ignore_errors=True)
    return newest


def is_json(file: Path) -> bool:
    """Whether the file is there and was written to its end."""
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def step_of(checkpoint: Path, separator: str) -> int:
    """The number at the end of a native checkpoint's name."""
    return int(checkpoint.name.rpartition(separator)[2])


def weights(folder: Path) -> list[Path]:
    """The files with weights in a native checkpoint; raises UserError where there are none."""
    found = sorted(folder.glob("*.safetensors*")) if folder.is_dir() else []
    if not any(file.suffix == ".safetensors" for file in found):
        raise UserError(f"{folder} has no weights to export; delete the stage's training log to train it again")
    return found


def beside_weights(model: Path) -> list[Path]:
    """The other files of a model folder: configuration, tokenizer, chat template."""
    return [
        file
        for file in sorted(model.iterdir())
        if file.is_file() and "safetensors" not in file.name and file.name != "provenance.json"
    ]


def copy(files: Iterable[Path], output: Path) -> None:
    """Copy files into a folder."""
    for file in files:
        shutil.copy2(file, output / file.name)
