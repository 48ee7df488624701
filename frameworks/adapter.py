"""What an adapter is: it turns a run into its framework's own command, and reads what the training wrote.

Each folder here with an `adapter.py` is a framework; its `ADAPTER` is an `Adapter`. An adapter turns a run into the
framework's own command, has it checked by the framework's own parser, and reads what training wrote (checkpoints,
logs). It never re-implements training.
"""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol
from unittest.mock import patch

from contracts.run_file import Run, Stage, framework_names
from frameworks import run_settings, trainer_environment
from frameworks.command_settings import Flags
from frameworks.memory import CheckpointSize, Memory
from recipes import answer_check, model_tokens, rewards
from system import forked_job
from system.errors import UserError
from system.unknown_names import unknown
from tasks import dataset_specs

FOLDER = Path(__file__).parent


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
    # Whether all that is wanted of a trainer that does not end at its last step is written; it is ended then.
    finished: Callable[[], bool] | None = None


class SettingsOfRuns(Protocol):
    """What frameworks/<name>/command.py offers: a run as settings of the framework's command."""

    def stated_settings(self, run: Run, stage: Stage) -> Flags:
        """What a stage's command states, with stand-ins for its files.

        Raises:
            UserError: the framework does not have what the run wants, or the batch or the GPUs do not divide.
        """

    def command_line(self, flags: Flags) -> list[str]:
        """Settings as words of the command."""


class InstalledParser(Protocol):
    """What frameworks/<name>/parser_check.py offers: the installed framework's own parser. It needs its environment."""

    def check(self, run: Run, stage: Stage) -> None:
        """Raise UserError unless the parser accepts the stage's command."""

    def accept(self, run: Run, stage: Stage, flags: Flags) -> None:
        """Raise UserError unless the parser accepts the settings; run and stage say on which devices."""

    def defaults(self) -> dict[str, Any]:
        """By setting, what the framework takes where a command does not state it."""

    def objectives(self) -> dict[str, list[str]]:
        """The names of `estimators` of advantages and of policy `losses` that the framework has."""


class Adapter(ABC):
    """One framework."""

    command: ClassVar[SettingsOfRuns]
    parser: ClassVar[InstalledParser]
    # The framework's name of a metric -> a column of contracts.tables.TRAINING_LOG, or one of these: `seconds` and
    # `tokens` of the step, and what is not in that table (`loss`, `critic_loss`, …). The framework uses the
    # same names in its log and in the line that it prints for a step.
    metrics: ClassVar[Mapping[str, str]]
    # The same for what our trainings take from their recorded rollouts instead: read from logs made without us.
    imported_metrics: ClassVar[Mapping[str, str]] = {}
    # A name of an earlier release -> today's, and what the value is multiplied with: of logs made without us.
    earlier_names: ClassVar[Mapping[str, tuple[str, float]]] = {}
    # Text that the framework prints without numbers of steps, by a pattern: what it is, and what to import instead.
    unnumbered_text: ClassVar[Mapping[str, str]] = {}
    # The framework's name of a timer -> the phase of a step that it is part of, in their order: see frameworks.phases.
    timers: ClassVar[Mapping[str, str]] = {}
    # Bytes of a native checkpoint, for estimates of disk space.
    checkpoint_size: ClassVar[CheckpointSize]
    # What the processes of a run on GPUs import; cluster/rehearsal.py imports them where there is none.
    entry_modules: ClassVar[Sequence[str]]
    # What a run on GPUs compiles when it starts: names of cluster.rehearsal.OPS.
    compiled_ops: ClassVar[Sequence[str]] = ()
    # What several processes of a run import where there is no GPU, and what they read then: see system.fork_server.
    preloaded: ClassVar[Sequence[str]] = ()
    preload_environment: ClassVar[Mapping[str, str]] = {}
    # The framework's name of how far the sampler's probabilities (or their logarithms) are from the trainer's, on
    # average. It is logged where a run has a sampler_correction.
    sampler_distance: ClassVar[str]
    # Settings under `native` for frameworks.one_gpu_variant: the share of the GPU's memory for vLLM, what else a
    # sampler on the GPU that trains needs, and those that only have a meaning with several GPUs.
    engine_share: ClassVar[str]
    colocated: ClassVar[Mapping[str, Any]] = {}
    several_gpus: ClassVar[Sequence[str]] = ()

    def fork_processes(self, run: Run) -> None:
        """Where there is no GPU, have this program and the run's processes go on as forks; see forked_job."""
        if run.device == "cpu":
            forked_job.fork_processes(self.preloaded, {**trainer_environment.ONE_CPU, **self.preload_environment})

    def check(self, run: Run) -> None:
        """Raise UserError unless rewards load, data suffice, and the framework's own parser accepts every stage."""
        for reward in run.rewards:
            try:
                rewards.load([reward], rewards.extraction_of(run))
            except (ImportError, AttributeError, TypeError) as error:
                raise UserError(
                    f"{run.file.name}: rewards: {reward['function']} cannot be loaded ({error}); name a function as "
                    "module.function",
                    code="reward-cannot-be-loaded",
                    function=reward["function"],
                ) from None
        answer_check.check_answer_is_seen(run)
        for stage in run.stages:
            _try_arguments(run, stage)
            available, needed = dataset_specs.problems_in(stage.dataset), run_settings.prompts_per_step(run, stage)
            if available < needed:
                raise run_settings.refuse(
                    run,
                    "batch.prompts_per_step",
                    f": {needed} prompts are more than the {available} of {stage.dataset}",
                    "too-few-problems",
                )
            self.parser.check(run, stage)

    @abstractmethod
    def newest_checkpoint(self, run: Run, stage: Stage, paths: Paths) -> int:
        """The newest complete native checkpoint; what a kill left of newer ones is deleted.

        Args:
            run: the run.
            stage: one of its stages.
            paths: where it is trained.

        Returns:
            Its step, from the start of the stage; 0 for none.
        """

    @abstractmethod
    def removable_checkpoints(self, run: Run, stage: Stage, paths: Paths) -> dict[int, list[Path]]:
        """By step of the stage, the folders of native checkpoints that the framework itself never removes.

        Args:
            run: the run.
            stage: one of its stages.
            paths: where it is trained.
        """

    @abstractmethod
    def prepare(self, run: Run, stage: Stage, seed: int, paths: Paths) -> Command:
        """Write the native training data, and return the command that trains from the newest checkpoint to the end.

        Args:
            run: the run.
            stage: one of its stages.
            seed: of sampling and of the order of the data.
            paths: where training reads and writes.

        Raises:
            UserError: the run does not fit the framework, its GPUs or its training set.
        """

    @abstractmethod
    def metrics_in_line(self, line: str) -> dict[str, float] | None:
        """The metrics, under the framework's names, in a line of output that ends a step; None for another line."""

    def is_further_update(self, line: str) -> bool:
        """Whether a line of output is of an update that the step of the line before has made, too."""
        return False

    @abstractmethod
    def metrics_of_training(self, run: Run, stage: Stage, paths: Paths) -> dict[int, dict[str, float]]:
        """By step of the stage, the metrics that the framework logged, under its own names; NaN where it has none.

        Where a resumed training repeated a step, the later counts. What cannot be read is reported and left out.

        Args:
            run: the run.
            stage: that was trained.
            paths: where it was trained.
        """

    @abstractmethod
    def metrics_of_file(self, file: Path) -> dict[int, dict[str, float]]:
        """By native step, the metrics under the framework's names in a log that it wrote in a training without us.

        Args:
            file: of a kind that the framework's own loggers write.

        Raises:
            UserError: it is of no such kind, or damaged.
        """

    def todays_names(self, values: Mapping[str, float]) -> dict[str, float]:
        """The metrics of a step, those of earlier releases under today's names where these are not there too."""
        renamed = dict(values)
        for earlier, (name, times) in self.earlier_names.items():
            if earlier in values and name not in values:
                value = values[earlier]
                renamed[name] = value if times == 1 else value * times
        return renamed

    def per_step(self, logged: Mapping[int, Mapping[str, float]]) -> dict[int, dict[str, float]]:
        """The same with each metric that is a sum since the training began turned into that of a step."""
        return {step: dict(values) for step, values in logged.items()}

    def our_columns(self, values: Mapping[str, float], max_response_tokens: int | None) -> dict[str, float]:
        """The metrics of one step under our names; a framework adds here what follows from several of its own.

        Args:
            values: by the framework's names.
            max_response_tokens: the limit, if known.
        """
        return {ours: values[native] for native, ours in self.metrics.items() if native in values}

    def columns_in_line(self, stage: Stage, line: str) -> dict[str, float] | None:
        """The metrics of a step under our names from a line of output; None for another line.

        Raises:
            UserError: the line reports a failure after which the trainer itself would continue.
        """
        values = self.metrics_in_line(line)
        return None if values is None else self.our_columns(values, stage.rollout["max_response_tokens"])

    @abstractmethod
    def export(self, run: Run, stage: Stage, step: int, paths: Paths, output: Path) -> None:
        """Write a native checkpoint in Hugging Face format.

        Args:
            run: the run.
            stage: that made the checkpoint.
            step: of the checkpoint, from the start of the stage.
            paths: where the stage was trained.
            output: an empty folder.

        Raises:
            UserError: there is no such checkpoint.
        """

    def stated_settings(self, run: Run, stage: Stage) -> dict[str, Any]:
        """The framework's settings that a stage's command states, under its own names (without Hydra's +)."""
        return {name.lstrip("+"): value for name, (value, _) in self.command.stated_settings(run, stage).items()}

    @abstractmethod
    def attention_implementations(self, run: Run, stage: Stage) -> set[str]:
        """The attention implementations that a stage's models are loaded with, under transformers' names."""

    @abstractmethod
    def memory_per_gpu(self, run: Run, stage: Stage, gpus: int, parameters: float) -> Memory:
        """What training keeps in the memory of one GPU.

        Args:
            run: the run.
            stage: one of its stages.
            gpus: that share the training.
            parameters: of the model.
        """


def _try_arguments(run: Run, stage: Stage) -> None:
    """Raise UserError for arguments that a reward refuses: it is called with no completions, and says so at once."""
    if with_arguments := [reward for reward in run.rewards if reward.get("arguments")]:
        limit = stage.rollout["max_response_tokens"]
        with patch.dict(os.environ, model_tokens.environment(Path(run.model), limit)):
            for function, _ in rewards.load(with_arguments):
                function((), ())


@cache
def load(framework: str) -> Adapter:
    """The adapter of a framework; raises UserError for an unknown one."""
    adapter: Adapter = load_module(framework, "adapter", "cannot train").ADAPTER
    return adapter


def frameworks_with(module: str) -> list[str]:
    """The frameworks whose folders have a module; some modules are for one purpose, which a framework may lack."""
    return [name for name in framework_names() if (FOLDER / name / f"{module}.py").is_file()]


def load_module(framework: str, module: str, without: str) -> Any:
    """A module of a framework's folder.

    Args:
        framework: its name.
        module: such as `command_parser`.
        without: what the framework cannot without it, for the message, such as `cannot be translated`.

    Raises:
        UserError: there is no such framework, or it has no such module.
    """
    if framework not in framework_names():
        raise unknown("framework", framework, framework_names())
    if framework not in frameworks_with(module):
        others = ", ".join(frameworks_with(module))
        raise UserError(
            f"{framework} {without}: it has no frameworks/{framework}/{module}.py; frameworks that have: {others}",
            code="missing-framework-module",
            framework=framework,
            module=module,
        )
    return importlib.import_module(f"frameworks.{framework}.{module}")
