"""`crosszero`: one program; its commands are in cli/table.py."""

from __future__ import annotations

import importlib
import sys

import click

from cli import environments, graph
from cli.table import COMMANDS, GROUPS, Click, Command, Module, Target
from system.errors import check_memory_limit, run_command
from system.unknown_names import unknown

PROGRAM = "crosszero"


class CommandTable(click.Group):
    """The commands of cli/table.py; the module of one is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        row = COMMANDS.get(cmd_name)
        return click_command(row) if row else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; a name that does not exist is answered with the nearest."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise unknown("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands by group."""
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(row.name, row.summary) for row in group])


def click_command(row: Command) -> click.Command:
    """What click runs for a row of the table."""
    if isinstance(row.starts, Click):
        command: click.Command = importlib.import_module(row.starts.module).command
    elif isinstance(row.starts, Module):
        command = environments.program_command(row.starts.environment, row.starts.module)
    else:
        command = target_command(row.starts)
    command.name, command.short_help = row.name, row.summary
    command.help = command.help or row.summary
    command.epilog = f"Example: {PROGRAM} {row.name} {row.example}".rstrip()
    return command


def target_command(target: Target) -> click.Command:
    """A target of the workflow, with the options that all have."""

    @graph.workflow_options
    def run(settings: dict[str, str], options: list[str], runs: tuple[str, ...] = ()) -> None:
        chosen = graph.configuration({target.names: runs or None})
        sys.exit(graph.run_target(target.name, settings | chosen, [*target.options, *options]))

    if target.names == "sweep":
        run = click.argument("runs", nargs=-1, metavar="SWEEP…", shell_complete=graph.complete_sweeps)(run)
    elif target.names:
        run = graph.runs_argument(run)
    return click.command(cls=graph.WorkflowCommand)(run)


@click.command(cls=CommandTable, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def crosszero() -> None:
    """Reproduce R1-Zero style reinforcement learning, evaluate models, and compare what came out."""


def main() -> None:
    """Run the program; a user's mistake ends it with one sentence."""

    def run() -> None:
        check_memory_limit()
        crosszero(prog_name=PROGRAM)

    run_command(run)


if __name__ == "__main__":
    main()
