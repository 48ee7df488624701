"""A run as settings of newframework's command: which key of a run file becomes which of its settings."""

from __future__ import annotations

from contracts.run_file import Run, Stage
from frameworks.command_settings import Flags
from system.errors import UserError


def unwritten(module: str, function: str) -> UserError:
    """The error of a function that is not written yet."""
    return UserError(
        f"newframework cannot do this yet: write {function} in frameworks/newframework/{module}.py, as the folders "
        "of the other frameworks show",
        code="unwritten-adapter",
        module=module,
        function=function,
    )


def stated_settings(run: Run, stage: Stage) -> Flags:
    """See frameworks.adapter.SettingsOfRuns; frameworks.command_settings.CommandSettings collects them."""
    raise unwritten("command", "stated_settings")


def command_line(flags: Flags) -> list[str]:
    """The settings as words of a command line."""
    raise unwritten("command", "command_line")
