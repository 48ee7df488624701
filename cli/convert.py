"""`crosszero convert FOLDER`: a model folder of a LoRA adapter, or of a trainer's shards."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli import environments, graph


@click.command(context_settings=environments.ANY_OPTIONS)
@click.argument("folder", shell_complete=graph.complete_files)
@click.pass_context
def command(context: click.Context, folder: str) -> None:
    """Make a model folder of what a trainer or PEFT has left, in the environment of the framework that can.

    FOLDER is a LoRA adapter (merged with the base model that it names, or --base MODEL), verl's global_step_<n> or its
    actor/, a checkpoint of DeepSpeed (ZeRO 1 to 3), such as OpenRLHF's _actor, or accelerate's shards of FSDP.
    --output MODEL names the folder to make.
    """
    from frameworks.convert_checkpoint import recognised

    framework = recognised(Path(folder)).framework
    arguments = [folder, *context.args]
    sys.exit(
        environments.run_module(framework, "frameworks.convert_checkpoint", arguments, program=context.command_path)
    )
