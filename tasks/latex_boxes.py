r"""Find the boxes in a text: `\boxed{…}` and `\fbox{…}`, which hold a final answer. In time linear in the text."""

from __future__ import annotations

import re
from typing import NamedTuple

_COMMAND = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s*")
_TOKEN = re.compile(r"\\.|[{}]", re.DOTALL)  # an escaped brace is a character like any other
_SHORT = re.compile(r"[^\s$.,;{}]+(?:\{[^{}]*\})*")


class Box(NamedTuple):
    r"""One complete box: from `start` to `end` in the text, its braces from `opening` on.

    `escaped` marks `\\boxed{…}`: in LaTeX a line break and the word "boxed", in data a backslash escaped twice.
    """

    start: int
    end: int
    opening: int
    escaped: bool
    text: str

    @property
    def content(self) -> str:
        """What the box holds, without white space around it; not stored, as nested boxes hold the text many times."""
        return self.text[self.opening + 1 : self.end - 1].strip()


def find_boxes(text: str) -> list[Box]:
    """All complete boxes with balanced braces, empty ones included, ordered by start."""
    commands = {command.end(): command.start() for command in _COMMAND.finditer(text)}
    starts = set(commands.values())
    escaped: set[int] = set()
    open_braces: list[int] = []
    complete = []
    for token in _TOKEN.finditer(text):  # one pass, however many boxes are open
        if token.group() == "{":
            open_braces.append(token.start())
        elif token.group() != "}":
            if token.start() + 1 in starts:
                escaped.add(token.start() + 1)
        elif open_braces and (brace := open_braces.pop()) in commands:
            start = commands[brace]
            complete.append(Box(start, token.end(), brace, start in escaped, text))
    return sorted(complete)


def last_boxed_gold(text: str) -> str | None:
    r"""The answer in a solution of a data set: the content of its last complete box; None if there is none.

    Data sets also have the short forms `\boxed 7` and `\boxed\pi`, which end before the next dollar sign, space or
    punctuation mark, boxes with an escaped backslash, and empty boxes.
    """
    complete = {box.start: box for box in find_boxes(text)}
    for command in reversed([*_COMMAND.finditer(text)]):
        if command.start() in complete:
            return complete[command.start()].content
        if text[command.end() : command.end() + 1] != "{" and (short := _SHORT.match(text, command.end())):
            return short.group()
    return None
