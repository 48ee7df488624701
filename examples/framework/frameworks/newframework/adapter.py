"""The adapter of newframework; frameworks/adapter.py says what each function does. Those not written yet say so."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from contracts.run_file import Run, Stage
from frameworks.adapter import Adapter, Command, Paths
from frameworks.memory import CheckpointSize, Memory
from frameworks.newframework import command, parser_check
from frameworks.newframework.command import unwritten


class NewFrameworkAdapter(Adapter):
    """Training through newframework's own command."""

    command: ClassVar = command
    parser: ClassVar = parser_check
    metrics: ClassVar = {  # its own names, on the left, are stand-ins
        "reward": "reward_mean",
        "response_length": "response_length_mean",
        "step_time": "seconds",
        "loss": "loss",
        "sampler_distance": "sampler_mismatch",
    }
    checkpoint_size = CheckpointSize(state=14, weights=2)  # AdamW in mixed precision
    sampler_distance = "sampler_distance"
    engine_share = "gpu_memory_utilization"
    entry_modules = ("newframework",)

    def newest_checkpoint(self, run: Run, stage: Stage, paths: Paths) -> int:
        """See Adapter."""
        raise unwritten("adapter", "newest_checkpoint")

    def removable_checkpoints(self, run: Run, stage: Stage, paths: Paths) -> dict[int, list[Path]]:
        """See Adapter."""
        raise unwritten("adapter", "removable_checkpoints")

    def prepare(self, run: Run, stage: Stage, seed: int, paths: Paths) -> Command:
        """See Adapter."""
        raise unwritten("adapter", "prepare")

    def metrics_in_line(self, line: str) -> dict[str, float] | None:
        """See Adapter; no line is recognised yet."""
        return None

    def metrics_of_training(self, run: Run, stage: Stage, paths: Paths) -> dict[int, dict[str, float]]:
        """See Adapter."""
        raise unwritten("adapter", "metrics_of_training")

    def metrics_of_file(self, file: Path) -> dict[int, dict[str, float]]:
        """See Adapter."""
        raise unwritten("adapter", "metrics_of_file")

    def export(self, run: Run, stage: Stage, step: int, paths: Paths, output: Path) -> None:
        """See Adapter."""
        raise unwritten("adapter", "export")

    def attention_implementations(self, run: Run, stage: Stage) -> set[str]:
        """See Adapter."""
        raise unwritten("adapter", "attention_implementations")

    def memory_per_gpu(self, run: Run, stage: Stage, gpus: int, parameters: float) -> Memory:
        """See Adapter."""
        raise unwritten("adapter", "memory_per_gpu")


ADAPTER = NewFrameworkAdapter()
