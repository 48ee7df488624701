"""Pages of `crosszero translate`, without a process of their own."""

from __future__ import annotations

import argparse
from typing import Any

from translate.__main__ import translated_page
from translate.translation import Translation

DEFAULTS: dict[str, Any] = {
    "variables": [], "gpus": None, "number": None, "scale": "full", "stage": 1, "check": False, "release": None,
}  # fmt: skip


def printed_page(text: str, source: str | None, target: str, *variables: str, **options: Any) -> str:
    """What the command prints.

    Args:
        text: a command, or the path of a script.
        source: its framework, `--from`; None to recognise it.
        target: `--to`.
        variables: each NAME=VALUE, `--set`.
        options: of the command line, by name.
    """
    arguments = DEFAULTS | {"variables": variables} | options
    return translated_page(argparse.Namespace(text=text, source=source, target=target, **arguments))


def everything_printed(translation: Translation) -> str:
    """All of a translation that its page may show."""
    sources = [line.source for line in translation.lines]
    listed = [*translation.same, *translation.cannot, *translation.unknown]
    return "\n".join([*sources, *(text for text, _ in listed), *translation.machine])
