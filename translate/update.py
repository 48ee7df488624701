"""A text of an earlier release in the same framework: every setting is kept, under the name that it has today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frameworks.command_parser import EXPORTED, CommandParser
from frameworks.command_settings import Flags
from translate.translation import Line, Translation, first_reason, todays_values


def update_settings(
    parser: CommandParser, settings: Mapping[str, Any], earlier: Mapping[str, Any], release: str
) -> tuple[Translation, Flags]:
    """Every setting of a text under its present name; what the pinned release does not have is listed as unknown.

    Args:
        parser: of the framework.
        settings: as the text has them.
        earlier: by setting, a default that the text's release had and the pinned one has not; it is stated.
        release: the text's, for comments.
    """
    translation, flags = Translation(parser.launcher_of_text(settings), parser.framework), Flags()
    lines: dict[str, Line] = {}
    gone = parser.tables.get("gone", {})
    todays = todays_values(parser, settings)
    summed = _sums(parser, todays.values, earlier)
    translation.unknown = [(text, f"{why}; left out") for text, why in todays.idle.items()]
    for new, meant in todays.values.items():
        if new.startswith(EXPORTED):
            translation.exported[new.removeprefix(EXPORTED)] = str(meant)
        written, text = parser.name_in_command(new, todays.values), ", ".join(todays.texts[new])
        if parser.is_launcher(new) and written is None:
            translation.machine.append(text)
        if new.startswith(EXPORTED) or parser.is_launcher(new):
            continue
        if why := gone.get(new, {}).get(str(meant)):
            translation.unknown.append((text, f"{why}; left out"))
        elif written is None and any(new in parts for _, parts in summed.values()):
            continue
        elif written is None:
            reason = first_reason(parser.tables["cannot"], new) if new.startswith(("--", "program")) else None
            otherwise = f"no setting of {parser.tables['release']}, by this name"
            translation.unknown.append((text, f"{reason or otherwise}; left out"))
        elif why := parser.why_not_in_command(new, meant):
            if meant is not None or parser.defaults[new] is not None:
                translation.unknown.append((text, f"{why}; left out"))
        else:
            earlier_names = [text for text in todays.texts[new] if not text.startswith(f"{new}=")]
            lines[written] = Line(written, meant, "", ", ".join(earlier_names))
            flags[written] = (meant, new)
    for name, (total, parts) in summed.items():
        lines[name] = Line(name, total, "", "", f"the sum of {' and '.join(parts)}")
        flags[name] = (total, name)
    translation.lines = list(lines.values())
    stated = {line.setting.lstrip("+"): line.value for line in translation.lines}
    added = {
        name: (value, f"the default of {release}, today {parser.defaults[name]}") for name, value in earlier.items()
        if parser.name_in_command(name, todays.values) == name and not parser.is_machine(name)
        and str(value) not in gone.get(name, {})
    }  # fmt: skip
    for name in [name for name, (value, _) in added.items() if value is None and not parser.says_none]:
        if name not in stated:
            translation.unknown.append(
                (f"{name}={added[name][0]}, {added[name][1]}", "no command can state that there is none; left out")
            )
        del added[name]
    needed = {name: (value, "needed today") for name, value in parser.needed(stated).items()}
    for name, (value, note) in {**added, **needed}.items():
        if name not in stated:
            written = parser.name_in_command(name, {**stated, name: value}) or name
            translation.lines.append(Line(written, value, "", "", note))
            flags[written] = (value, name)
    return translation, flags


def _sums(
    parser: CommandParser, stated: Mapping[str, Any], earlier: Mapping[str, Any]
) -> dict[str, tuple[float, list[str]]]:
    """By setting of today, the sum of those of a text that it stands for, and their names; where all are numbers."""
    values = {**earlier, **stated}
    table: dict[str, list[str]] = parser.tables.get("sums", {})
    return {
        name: (sum(values[part] for part in parts), parts) for name, parts in table.items()
        if name not in stated and all(isinstance(values.get(part), int | float) for part in parts)
    }  # fmt: skip
