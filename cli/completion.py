"""`crosszero completion SHELL`: the shell's completion of commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion of commands and options for a shell: eval "$(crosszero completion bash)"."""
    completion = get_completion_class(shell)
    assert completion is not None, shell  # click has these three
    program = context.find_root()
    click.echo(completion(program.command, {}, "crosszero", "_CROSSZERO_COMPLETE").source())
