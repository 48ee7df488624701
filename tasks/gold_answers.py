"""Read a data set's gold answer as it is written there: in a box, after `####`, as an integer. Nothing is evaluated."""

from __future__ import annotations

import re
from collections.abc import Callable

from tasks.latex_boxes import last_boxed_gold

_NUMBER = re.compile(r"[-+]?\$?(\d[\d,]*(?:\.\d+)?|\.\d+)")
_INTEGER = re.compile(r"([-+]?)(\d++)(?:\.0*+)?(?:\^\\circ|\^\{\\circ\})?")


def after_hash_marks(text: str) -> str | None:
    """GSM8K's answer: the number after the last `####`, without thousands separators; None if it is not a number."""
    _, marks, tail = text.rpartition("####")
    if not marks or not _NUMBER.fullmatch(tail.strip()):
        return None
    return tail.strip().replace(",", "").replace("$", "").lstrip("+")


def integer(value: object) -> str | None:
    r"""An integer written as the competitions' answer keys do: `025`, `27.0` and `336^\circ` are 25, 27 and 336.

    Anything else stays as it is.
    """
    text = "" if value is None else str(value).strip().strip("$")
    match = _INTEGER.fullmatch(text)
    if match is None:
        return text or None
    digits = match[2].lstrip("0") or "0"
    return f"-{digits}" if match[1] == "-" and digits != "0" else digits


def as_written(value: object) -> str | None:
    """The answer without white space around it; None if it is missing or empty."""
    text = "" if value is None else str(value).strip()
    return text or None


def boxed_integer(text: str) -> str | None:
    """An integer, alone or in a box: the AIME sets on the hub have only the box as `solution`."""
    return integer(last_boxed_gold(text) or text)


FORMS: dict[str, Callable[..., str | None]] = {
    "as_written": as_written,
    "last_boxed": last_boxed_gold,
    "after_hash_marks": after_hash_marks,
    "integer": integer,
    "boxed_integer": boxed_integer,
}
