"""`crosszero convert FOLDER`: a model folder of a LoRA adapter, of a trainer's shards, or of a GGUF file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli import environments, graph
from contracts.checkpoint_formats import GGUF


@click.command(context_settings=environments.ANY_OPTIONS)
@click.argument("folder", shell_complete=graph.complete_files)
@click.pass_context
def command(context: click.Context, folder: str) -> None:
    """Make a model folder of what a trainer, PEFT or llama.cpp has left, in the environment that can.

    FOLDER is a LoRA adapter (merged with the base model that it names, or --base MODEL), verl's global_step_<n> or its
    actor/, a checkpoint of DeepSpeed (ZeRO 1 to 3), such as OpenRLHF's _actor, accelerate's shards of FSDP, or a GGUF
    file (--end-token TOKEN, where its own end token is wrong). --output MODEL names the folder to make.
    """
    from frameworks.convert_checkpoint import recognised
    from recipes.models import GGUF_ENVIRONMENT

    one = recognised(Path(folder))
    environment, module = one.framework, "frameworks.convert_checkpoint"
    if one.format == GGUF:
        environment, module = GGUF_ENVIRONMENT, "recipes.gguf_model"
    sys.exit(environments.run_module(environment, module, [folder, *context.args], program=context.command_path))
