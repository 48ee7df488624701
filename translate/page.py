"""The page that is printed of a translation: settings as a bash array with comments, the command, and the lists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from frameworks.command_parser import CommandParser
from translate.translation import Line, Translation, key_meanings


def as_text(
    translation: Translation, target: CommandParser, head: Sequence[str] = (), left_open: Sequence[str] = ()
) -> str:
    """The page: what to know first, the settings and the command, and what else became of the text's settings.

    Args:
        translation: of a text.
        target: whose settings they are.
        head: further sentences of the first block.
        left_open: variables that a shell fills in, each with its $.
    """

    def as_words(arguments: Sequence[str]) -> str:
        return " ".join(_as_word(word, left_open) for word in arguments)

    rows = [(as_words(target.as_arguments({line.setting: (line.value, "")})), line) for line in translation.lines]
    width = min(60, max((len(setting) for setting, _ in rows), default=0))
    changed = [entry for entry in translation.cannot if entry[0] in translation.objective]
    rest = [entry for entry in translation.cannot if entry not in changed]
    first = [*_listed("Not known to this translator", translation.unknown, ": ")]
    if changed:
        first += _listed("Another objective than the text's", changed, ": ")
    text = [*first, *(f"# {sentence}" for sentence in head), ""]
    text += [f"export {name}={as_words([value])}" for name, value in translation.exported.items()]
    text += [
        "settings=(",
        *(f"    {setting.ljust(width)}  # {_comment(line, target)}".rstrip(" #") for setting, line in rows),
    ]
    text += [")", f'{as_words(translation.launcher)} "${{settings[@]}}"']
    if target.framework == translation.source:  # every setting is kept
        if left_out := [(setting, "") for setting in translation.machine]:
            text += ["", *_listed("Of the text's launcher alone, and left out", left_out, "")]
        return "\n".join(text)
    for title, entries, joint in (
        ("The same by default, and left out", translation.same, ", since "),
        ("Concerns the source's machine, files and logs alone", [(text, "") for text in translation.machine], ""),
        ("Cannot be expressed", rest, ", because "),
    ):
        text += ["", *_listed(title, entries, joint)]
    return "\n".join(text)


def _as_word(word: str, left_open: Sequence[str]) -> str:
    """A word for a shell, which fills in the variables that the text left open, and nothing else."""
    names = "|".join(re.escape(name[1:]) for name in left_open if name[1:].isidentifier() or name[1:].isdigit())
    variable = rf"(?:{names})(?!\w)|\{{(?:{names})\}}"
    if not names or not re.search(rf"\$(?:{variable})", word):
        return shlex.quote(word)
    escaped = re.sub(rf'[\\"`]|\$(?!{variable})', r"\\\g<0>", word)
    return f'"{escaped}"'


def _listed(title: str, entries: Sequence[tuple[str, str]], joint: str) -> list[str]:
    return [f"# {title}: {len(entries) or 'none'}", *(f"#   {setting}{joint}{reason}" for setting, reason in entries)]


def _comment(line: Line, target: CommandParser) -> str:
    """What a setting means, its unit, and what it comes from; without brackets, which would end the array."""
    unit = target.tables["units"].get(line.setting)
    parts = [
        target.tables.get("meanings", {}).get(line.setting) or key_meanings().get(line.key, ""),
        f"in {unit}" if unit else "",
        f"from {line.source}" if line.source else "",
        line.note,
    ]
    return "; ".join(part for part in parts if part).replace("(", "[").replace(")", "]")
