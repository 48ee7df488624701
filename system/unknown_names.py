"""The error for a name that does not exist: what it should name, the nearest name, and all that there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from system.errors import UserError


def meant(name: str, known: Iterable[str], most: int = 3) -> str:
    """`; did you mean …?` with the nearest names; empty if none is similar."""
    near = difflib.get_close_matches(name, list(known), n=most)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def unknown(what: str, name: str, known: Iterable[str]) -> UserError:
    """Such as: there is no task 'countdwn'; did you mean countdown? There are: countdown, math."""
    known = list(known)
    return UserError(
        f"there is no {what} '{name}'{meant(name, known) or '.'} There are: {', '.join(known)}",
        code="unknown-name",
        kind=what,
        name=name,
    )
