"""Figures that pages state, beside what their commands print: figures.yaml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from contracts.run_file import ROOT
from system.yaml_files import read_yaml

FILE = Path(__file__).with_name("figures.yaml")
Values = list[tuple[str, ...]]


@dataclass(frozen=True)
class Figure:
    """One entry of figures.yaml."""

    page: str
    states: str
    command: str
    prints: str
    file: str | None = None
    count: bool = False

    def stated(self) -> Values:
        """What the page says."""
        return matches(self.states, (ROOT / self.page).read_text(encoding="utf-8"))

    def printed(self, output: str, folder: Path) -> Values:
        """What the command printed, or wrote into its file."""
        printed = matches(self.prints, (folder / self.file).read_text(encoding="utf-8") if self.file else output)
        return [(str(len(printed)),)] if self.count else printed


def matches(pattern: str, text: str) -> Values:
    """The groups of all matches, in the order of their names where they have names."""
    values = []
    for match in re.finditer(pattern, text, re.MULTILINE):
        names = sorted(match.groupdict())
        values.append(tuple(map(plain_number, match.group(*names) if len(names) > 1 else match.groups())))
    return values


def plain_number(value: str) -> str:
    """5,276 as 5276 and 100.0 as 100; a text that is no number as it is."""
    try:
        return f"{float(value.replace(',', '')):.10g}"
    except ValueError:
        return value


def figures() -> list[Figure]:
    """All entries."""
    return [Figure(**entry) for entry in read_yaml(FILE)["figures"]]


def stale_figures(command: str, output: str, folder: Path) -> list[str]:
    """A line for each page whose figures are not what the command printed.

    Args:
        command: as the documentation has it.
        output: of the command.
        folder: in which it ran.
    """
    lines = []
    for figure in figures():
        if command.startswith(figure.command):
            stated, printed = figure.stated(), figure.printed(output, folder)
            if others := [value for value in stated if value not in printed]:
                lines.append(f"{figure.page} states {others}, and the command prints {printed or 'no such figures'}")
    return lines
