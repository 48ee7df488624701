"""Gold answers as data sets write them: in a box, after `####`, as an integer. Nothing here evaluates anything."""

from __future__ import annotations

import re
from collections.abc import Callable

_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)  # an escaped brace is a character like any other
_SHORT = re.compile(r"[^\s$.,;{}]+(?:\{[^{}]*\})*")
_NUMBER = re.compile(r"[-+]?\$?(\d[\d,]*(?:\.\d+)?|\.\d+)")
_INTEGER = re.compile(r"([-+]?)0*(\d+)(?:\.0*)?(?:\^\\circ|\^\{\\circ\})?")


def last_boxed(text: str) -> str | None:
    r"""Content of the last complete `\boxed{…}` or `\fbox{…}`, braces inside it balanced; None if there is none.

    Escaped braces (`\{`, `\}`) do not count. The short form `\boxed 7` or `\boxed\pi` gives what stands before the
    next dollar sign, space or end. A box that is never closed is passed over for the one before it.
    """
    starts = {box.end() for box in _BOX.finditer(text)}
    found = {start: _short_form(text, start) for start in starts if text[start : start + 1] != "{"}
    open_braces: list[int] = []
    for mark in _BRACE.finditer(text):  # one pass, however many boxes are open
        if mark.group() == "{":
            open_braces.append(mark.start())
        elif mark.group() == "}" and open_braces and (start := open_braces.pop()) in starts:
            found[start] = text[start + 1 : mark.start()]
    complete = [start for start, content in found.items() if content is not None]
    return (found[max(complete)] or "").strip() if complete else None


def _short_form(text: str, start: int) -> str | None:
    content = _SHORT.match(text, start)
    return content.group() if content else None


def after_hash_marks(text: str) -> str | None:
    """GSM8K's final answer: the number after the last `####`, thousands separators removed; None if it is no number."""
    _, marks, tail = text.rpartition("####")
    if not marks or not _NUMBER.fullmatch(tail.strip()):
        return None
    return tail.strip().replace(",", "").replace("$", "").lstrip("+")


def integer(value: object) -> str | None:
    r"""An integer written as the competitions' answer keys do: `025`, `27.0` and `336^\circ` are 25, 27 and 336.

    What is no integer is kept as it stands.
    """
    text = "" if value is None else str(value).strip().strip("$")
    match = _INTEGER.fullmatch(text)
    if match is None:
        return text or None
    digits = match[2]
    return f"-{digits}" if match[1] == "-" and digits != "0" else digits


def as_written(value: object) -> str | None:
    """The answer as it stands, without white space around it; None if it is missing or empty."""
    text = "" if value is None else str(value).strip()
    return text or None


def boxed_integer(text: str) -> str | None:
    """An integer that may be the content of a box (the AIME sets on the hub have the box alone as `solution`)."""
    return integer(last_boxed(text) or text)


FORMS: dict[str, Callable[..., str | None]] = {
    "as_written": as_written,
    "last_boxed": last_boxed,
    "after_hash_marks": after_hash_marks,
    "integer": integer,
    "boxed_integer": boxed_integer,
}
