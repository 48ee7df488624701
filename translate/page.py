"""The page that is printed of a translation: settings as a bash array with comments, the command, and the lists."""

from __future__ import annotations

import shlex

from frameworks.command_parser import CommandParser
from translate.translation import Line, Translation, key_meanings


def as_text(translation: Translation, target: CommandParser) -> str:
    """The page."""
    rows = [(shlex.join(target.as_arguments({line.setting: (line.value, "")})), line) for line in translation.lines]
    width = min(60, max((len(setting) for setting, _ in rows), default=0))
    text = ["settings=(", *(f"    {setting.ljust(width)}  # {_comment(line, target)}" for setting, line in rows)]
    text += [")", f'{shlex.join(translation.launcher)} "${{settings[@]}}"']
    for title, entries in (
        ("The same by default, and left out", [f"{setting}, since {why}" for setting, why in translation.same]),
        ("Concerns the source's machine, files and logs alone", translation.machine),
        ("Cannot be expressed", [f"{setting}, because {why}" for setting, why in translation.cannot]),
    ):
        text += ["", f"# {title}: {len(entries) or 'none'}", *(f"#   {entry}" for entry in entries)]
    return "\n".join(text)


def _comment(line: Line, target: CommandParser) -> str:
    """What a setting means, its unit, and what it comes from; without brackets, which would end the array."""
    unit = target.tables["units"].get(line.setting)
    parts = [
        key_meanings()[line.key],
        f"in {unit}" if unit else "",
        f"from {line.source}" if line.source else "",
        line.note,
    ]
    return "; ".join(part for part in parts if part).replace("(", "[").replace(")", "]")
