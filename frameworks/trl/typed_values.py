"""Values of TRL's settings as its own parser reads them: by the type that each has in the pinned release.

transformers.HfArgumentParser makes the parser of dataclasses. It takes ten words for truth values, and adds --no_NAME
for each that is true by default. trl.TrlParser makes a YAML file's values the defaults, and argparse converts a default
that is text as it converts an argument; other values of a YAML file stay what they are.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from frameworks.command_parser import value_of_text
from system.errors import UserError

LIST = "list of "
TRUTH = {
    **dict.fromkeys(("yes", "true", "t", "y", "1"), True), **dict.fromkeys(("no", "false", "f", "n", "0"), False),
}  # fmt: skip
NUMBERS = {"int": int, "float": float}
WAS_TRUTH = "str, once bool"  # of a choice
WANTED = {"bool": "yes or no", "int": "a whole number", "float": "a number"}
_OPTION = re.compile(r"--?[A-Za-z]")
OPEN = re.compile(r"[$`]")  # in what a shell fills in

Option = tuple[str, list[str]]  # its name, and the words after it


@cache
def types() -> dict[str, str]:
    """By setting of the pinned release, the type of its value, or `list of` that of its values."""
    text = Path(__file__).with_name("released_types.json").read_text(encoding="utf-8")
    released: dict[str, str] = json.loads(text)
    return released


def options_of(arguments: Iterable[str]) -> list[Option]:
    """The options of a command line in their order; names have underscores, as argparse's have."""
    options: list[Option] = []
    for word in arguments:
        if _OPTION.match(word):
            name, equals, text = word.lstrip("-").partition("=")
            options.append((name.replace("-", "_"), [text] if equals else []))
        elif options:
            options[-1][1].append(word)
    return options


def words_before_options(arguments: Iterable[str]) -> list[str]:
    """The first arguments of a command line, which belong to no option."""
    return list(takewhile(lambda word: not _OPTION.match(word), arguments))


def settings_of_options(options: Iterable[Option], kinds: Mapping[str, str]) -> dict[str, Any]:
    """Options as settings; of one that is repeated the last counts.

    Args:
        options: of a command line.
        kinds: the type of each setting; one without is read as the value that it looks like.
    """
    settings: dict[str, Any] = {}
    for name, texts in options:
        positive = name.removeprefix("no_")
        if positive != name and kinds.get(positive) == "bool" and not texts:
            settings[positive] = False
        else:
            values = [converted(text, kinds.get(name)) for text in texts]
            settings[name] = values if len(values) > 1 else values[0] if values else True
    return settings


def converted(text: str, kind: str | None) -> Any:
    """A word of a command line; one that is none of the type stays text, for a shell's variables."""
    kind = (kind or "").removeprefix(LIST)
    if kind in ("bool", WAS_TRUTH):
        return TRUTH.get(text.lower(), text)
    if kind in NUMBERS:
        with contextlib.suppress(ValueError):
            return NUMBERS[kind](text)
        return text
    return value_of_text(text) if not kind or text.startswith("{") else text


def of_file(value: Any, kind: str | None) -> Any:
    """A value of a YAML file, as a command can state it where it can."""
    if isinstance(value, str):
        return converted(value, kind)
    is_whole = kind == "int" and isinstance(value, float) and value.is_integer()
    return int(value) if is_whole else value


def refuse_other_types(settings: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
    """Raise UserError for text that TRL's parser refuses for a number or a truth value; a shell's variables may stay.

    Args:
        settings: by name.
        kinds: the type of each.
    """
    for name, value in settings.items():
        wanted = WANTED.get(kinds.get(name, ""))
        if wanted and isinstance(value, str) and not OPEN.search(value):
            code = "not-a-truth-value" if kinds[name] == "bool" else "not-a-number"
            raise UserError(f"{name} should be {wanted}, but is '{value}'; correct it", code=code, setting=name)


def mapping(name: str, value: Any) -> dict[Any, Any]:
    """A value that is a mapping; nothing where it is null or a shell fills it in; raises UserError for another."""
    if value is None or (isinstance(value, str) and OPEN.search(value)):
        return {}
    if not isinstance(value, dict):
        raise UserError(f"{name} should be a mapping, but is '{value}'; correct it", code="not-a-mapping")
    return value


def why_not_in_command(name: str, value: Any) -> str | None:
    """Why no command line can state a value that a YAML file can; None if one can."""
    kind = types().get(name, "")
    values = value if isinstance(value, list) else [value]
    if value is None:
        return "no command can state that there is none"
    if len(values) > 1 and not kind.startswith(LIST):
        return "a command states one value"
    is_mapping = any(isinstance(one, dict) for one in values)
    return "a command cannot state a mapping here" if is_mapping and kind != "str" else None
