"""A run of many GPUs on one, with the same updates: the batch of the run file, in more and smaller forward passes.

What is trained stays: prompts and samples of each step and update, lengths, objective, optimiser. A run whose sampler
has GPUs of its own samples on the GPU that trains, in turns.
"""

from __future__ import annotations

import dataclasses

from contracts.run_file import Run, Stage
from frameworks import adapter

ENGINE_SHARE = 0.2  # of the GPU's memory for vLLM, beside the optimiser's state


def on_one_gpu(run: Run, samples_per_device: int) -> Run:
    """The run with one GPU.

    Args:
        run: with GPUs.
        samples_per_device: completions of a forward pass.
    """
    stages = tuple(_stage(run, stage, samples_per_device) for stage in run.stages)
    hardware = run.hardware | {"nodes": 1, "gpus": 1}
    hardware.pop("expected_hours", None)  # on its own GPUs
    gpus = min(1, run.evaluation.get("gpus", 1))
    return dataclasses.replace(run, stages=stages, hardware=hardware, evaluation=run.evaluation | {"gpus": gpus})


def pass_sizes(run: Run) -> list[int]:
    """Sizes of forward passes to try, the run file's first: those that divide it."""
    most = min(stage.batch.get("samples_per_device", 1) for stage in run.stages)
    return [size for size in range(most, 0, -1) if most % size == 0]


def _stage(run: Run, stage: Stage, samples_per_device: int) -> Stage:
    batch = stage.batch | {"samples_per_device": samples_per_device}
    if run.hardware["gpus"] == 1:
        return dataclasses.replace(stage, batch=batch)
    framework, rollout, native = adapter.load(run.framework), dict(stage.rollout), dict(stage.native)
    rollout.pop("gpus", None)
    native = {name: value for name, value in native.items() if name not in framework.several_gpus}
    if rollout["engine"] != "transformers":
        rollout["engine"] = "vllm-colocated"
        native |= {**framework.colocated, framework.engine_share: ENGINE_SHARE}
    return dataclasses.replace(stage, batch=batch, rollout=rollout, native=native)
