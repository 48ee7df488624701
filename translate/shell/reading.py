"""`read` and `mapfile`: what a script takes from its standard input."""

from __future__ import annotations

import re
from typing import Protocol

from translate.shell.expansion import Expansion
from translate.shell.values import WHITESPACE, Outcome, State, unknown
from translate.shell.words import split_words

_WITH_VALUE = {"read": "adinNptu", "mapfile": "dnOsuCc"}


class Reader(Protocol):
    """What follows a script and has a standard input."""

    state: State
    standard_input: str | None

    @property
    def expansion(self) -> Expansion:
        """Of words, with the state as it is now."""


def read(shell: Reader, arguments: list[str]) -> Outcome:
    """Take the next line of standard input; fails where it has no end."""
    options, names = _options("read", arguments[1:])
    array, text = options.get("a"), None if options.keys() & set("nNu") else shell.standard_input
    if text is None:
        for name in names or ["REPLY"]:
            shell.state.assign(name, unknown(f"${name}"))
        if array:
            shell.state.assign(array, [unknown(f"${{{array}[@]}}")])
        return Outcome(None)
    end = options.get("d", "\n")[:1]
    line, ends, shell.standard_input = text.partition(end) if end else (text, "", "")
    if array:
        elements = split_words(line, shell.expansion.separators)
        shell.state.assign(array, [element for element in elements if element is not None])
        return Outcome(bool(ends))
    values = _first_words(line, shell.expansion.separators, len(names)) if names else [line]
    for number, name in enumerate(names or ["REPLY"]):
        shell.state.assign(name, values[number] if number < len(values) else "")
    return Outcome(bool(ends))


def map_file(shell: Reader, arguments: list[str]) -> Outcome:
    """Take all lines of standard input as an array."""
    options, names = _options("mapfile", arguments[1:])
    array, text = (names or ["MAPFILE"])[0], None if options.keys() - {"t"} else shell.standard_input
    if text is None:
        shell.state.assign(array, [unknown(f"${{{array}[@]}}")])
        return Outcome()
    shell.standard_input = ""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text) if "t" not in options else text.removesuffix("\n").split("\n")
    shell.state.assign(array, lines if text else [])
    return Outcome()


def _options(command: str, arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options of a command by letter, each with its value, and the words after them."""
    options, rest = dict[str, str](), iter(arguments)
    for word in rest:
        if not re.match(r"-[a-zA-Z]", word):
            return options, [word, *rest]
        for at, letter in enumerate(word[1:], 2):
            takes = letter in _WITH_VALUE[command]
            options[letter] = (word[at:] or next(rest, "")) if takes else ""
            if takes:
                break
    return options, []


def _first_words(line: str, separators: str, count: int) -> list[str]:
    """A line's words, the last with all that follows it."""
    white = "".join(sign for sign in WHITESPACE if sign in separators)
    signs = "".join(sign for sign in separators if sign not in WHITESPACE)
    values, rest = list[str](), line.lstrip(white)
    while rest:
        end = next((at for at, sign in enumerate(rest) if sign in separators), len(rest))
        after = rest[end:].lstrip(white)
        after = after[after[:1] in signs :].lstrip(white) if signs else after
        if len(values) == count - 1 and after:
            return [*values, rest.rstrip(white)]
        values, rest = [*values, rest[:end]], after
    return values
