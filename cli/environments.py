"""Start a module of the project with the Python of one of its environments, which is built first if it is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from envs import build
from system.command_line import PROGRAM
from system.errors import ROOT, UserError
from system.interruptible import run_interruptible

BASE = "base"  # the environment that this program itself runs in
ANY_OPTIONS = {"ignore_unknown_options": True, "allow_extra_args": True}


def interpreter(environment: str, device: str = "cpu") -> Path:
    """The Python of an environment; it is installed if it is missing. Raises UserError if that fails."""
    if environment == BASE:
        return Path(sys.executable)
    try:
        build.check_place()
        build.build(environment, device)
        return build.python(environment, device)
    except build.BuildError as error:
        raise UserError(str(error), code="environment-not-built", environment=environment) from None


def run_module(environment: str, module: str, arguments: Sequence[str], *, program: str, device: str = "cpu") -> int:
    """Run a module as a program, in the user's folder; returns its exit status.

    Args:
        environment: a folder of envs/.
        module: as for `python -m`.
        arguments: of the program.
        program: what the user typed, for its `usage:` line.
        device: cpu or cuda.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [str(interpreter(environment, device)), "-m", module, *arguments]
    # Nothing of the user's folder is imported, such as a random.py of theirs.
    own = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", PROGRAM: program}
    return run_interruptible(command, environment={**os.environ, **own})


def program_command(environment: str, module: str) -> click.Command:
    """A module as a command with its own options, `--help` among them.

    `--environment NAME` starts it in another environment; one that works on GPUs has an option `--device`.
    """

    @click.command(context_settings=ANY_OPTIONS, add_help_option=False)
    @click.option("--environment", default=environment)
    @click.option("--device", default=None)
    @click.pass_context
    def run(context: click.Context, environment: str, device: str | None) -> None:
        arguments = [*context.args, *(["--device", device] if device else [])]
        sys.exit(run_module(environment, module, arguments, program=context.command_path, device=device or "cpu"))

    return run
