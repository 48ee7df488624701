"""Writes one checkpoint of a training in Hugging Face format; `python -m frameworks export` calls it."""

from __future__ import annotations

import argparse
from pathlib import Path

from contracts import ended_training, model_folder, provenance
from contracts.seeds import run_id
from frameworks import adapter, checkpoints
from frameworks.adapter import Paths
from recipes.runs import load_run
from system import durable


def export(arguments: argparse.Namespace) -> None:
    """Write one checkpoint in Hugging Face format; step 0 is the base model."""
    run = load_run(arguments.run, arguments.scale)
    if why := ended_training.reason(arguments.source):
        ended_training.write_absence(arguments.output, why)
        return
    base_sha256 = model_folder.check(arguments.model)
    with durable.new(arguments.output) as checkpoint:
        checkpoint.mkdir()
        if arguments.step == 0:
            checkpoints.copy_into(checkpoints.model_files(arguments.model), checkpoint)
        else:
            stage = run.stage_of(arguments.step)
            paths = Paths(problems=Path(), model=arguments.model, work=arguments.work)
            adapter.load(run.framework).export(run, stage, arguments.step - stage.steps_before, paths, checkpoint)
        provenance.write(
            checkpoint,
            run=run_id(run.name, arguments.seed),
            scale=run.scale,
            step=arguments.step,
            model=run.model,
            base_sha256=base_sha256,
            **provenance.of_weights(arguments.model),
            sha256=model_folder.check(checkpoint),
        )
