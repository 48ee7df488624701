"""A stage's command, read by the installed newframework's own parser, without a GPU or weights."""

from __future__ import annotations

from typing import Any

from contracts.run_file import Run, Stage
from frameworks.command_settings import Flags
from frameworks.newframework.command import stated_settings, unwritten


def check(run: Run, stage: Stage) -> None:
    """Let the framework's parser read the rendered command."""
    accept(run, stage, stated_settings(run, stage))


def accept(run: Run, stage: Stage, flags: Flags) -> None:
    """The same of given settings; import the framework here, not at the head of the module."""
    raise unwritten("parser_check", "accept")


def objectives() -> dict[str, list[str]]:
    """See frameworks.adapter.InstalledParser: it has one."""
    return {"estimators": [], "losses": []}


def defaults() -> dict[str, Any]:
    """What the release takes for each setting that a command leaves out."""
    raise unwritten("parser_check", "defaults")
