"""The error for a name that does not exist: what it should name, the nearest name, and all that there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from contracts.errors import UserError


def unknown(what: str, name: str, known: Iterable[str]) -> UserError:
    """Such as: there is no task 'countdwn'; did you mean countdown? There are: countdown, math."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=3)
    meant = f"; did you mean {' or '.join(near)}?" if near else "."
    return UserError(f"there is no {what} '{name}'{meant} There are: {', '.join(known)}")
