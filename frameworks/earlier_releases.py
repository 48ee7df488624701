"""Defaults of earlier releases that are others today: what a script of its time meant by what it does not say.

frameworks/<name>/earlier_defaults.yaml, read from the tags of the framework's own repository, holds

releases   versions with the day of their tag, the oldest first
defaults   by setting, under its name of today, each release that changed its default with the new one
absent     settings that a release may not have had yet, with the value that does what it did
meanings   by setting, the release before which it meant something else, and what

Settings that concern the machine alone are left out.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from frameworks.command_parser import FOLDER, CommandParser
from frameworks.release_defaults import yaml_value
from system.errors import UserError
from system.yaml_files import read_yaml


def _table(framework: str) -> dict[str, Any]:
    return read_yaml(FOLDER / framework / "earlier_defaults.yaml")


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
    return tuple(numbers + [0] * (3 - len(numbers)))


def chosen_release(parser: CommandParser, wanted: str) -> str:
    """The newest listed release that is not newer than a version, or that was there on a day.

    Args:
        parser: of the framework whose releases they are.
        wanted: such as 0.5.1, or 2025-03-03.

    Raises:
        UserError: it is neither, or before the first.
    """
    framework, pinned = parser.framework, parser.tables["release"].split()[1]
    releases: dict[str, datetime.date] = _table(framework)["releases"]
    if re.fullmatch(r"\d{4}-\d\d-\d\d", wanted):
        older = [version for version, day in releases.items() if str(day) <= wanted]
    elif re.fullmatch(r"v?\d+(\.\d+)*(\.?(post|rc)\d+)?", wanted):
        older = [version for version in [*releases, pinned] if _numbers(version) <= _numbers(wanted)]
    else:
        raise UserError(f"--release takes a version or a day such as 2025-03-03, not '{wanted}'", code="no-release")
    if not older:
        first = next(iter(releases))
        raise UserError(
            f"--release: {framework} {wanted} is before {first}, the first whose defaults are known here",
            code="release-too-old", first=first,
        )  # fmt: skip
    return older[-1]


def defaults_then(parser: CommandParser, release: str) -> dict[str, Any]:
    """By setting, the default of a listed release where it is another than today's."""
    table = _table(parser.framework)
    order = [*table["releases"], parser.tables["release"].split()[1]]
    then = {}
    for name, changes in table["defaults"].items():
        before = [value for since, value in changes.items() if order.index(since) <= order.index(release)]
        if not before and name not in table["absent"]:
            continue
        value = before[-1] if before else table["absent"][name]
        if yaml_value(value) != yaml_value(parser.defaults.get(name)):
            then[name] = value
    return then


def meanings_then(parser: CommandParser, release: str) -> list[str]:
    """One sentence for each setting that meant something else in a listed release, which is not translated."""
    table = _table(parser.framework)
    order = list(table["releases"])
    return [
        f"In {parser.framework} {release}, {name}: {meaning}. That is not translated."
        for name, meanings in table.get("meanings", {}).items()
        for until, meaning in meanings.items()
        if release in order and order.index(release) < order.index(until)
    ]


def changed_defaults(parser: CommandParser, used: Mapping[str, Any]) -> list[str]:
    """One sentence for each setting whose default was another in an earlier release.

    Args:
        parser: of the framework.
        used: settings that the text relies on without stating them.
    """
    table, sentences = _table(parser.framework), []
    order = list(table["releases"])
    for name, changes in table["defaults"].items():
        if name not in used:
            continue
        ends = list(changes)[1:]
        parts = [f"{value} before {end}" for value, end in zip(changes.values(), ends, strict=False)]
        if name in table["absent"] and order[0] not in changes:
            parts.insert(0, f"not there before {next(iter(changes))}, which is as if {table['absent'][name]}")
        if parts:
            sentences.append(f"{name}: {', '.join(parts)}; {parser.defaults.get(name)} today")
    return sentences
