"""The error for a name that does not exist: what it should name, the nearest names, and all if they are few."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from system.errors import UserError

FEW = 25  # names that an error lists


def nearest(name: str, known: Iterable[str], most: int = 5, cutoff: float = 0.5) -> list[str]:
    """The known names most similar to a mistyped one, with or without what comes before the last slash.

    Args:
        name: as typed.
        known: the known ones.
        most: names to return at most.
        cutoff: similarity from 0 to 1, see difflib.get_close_matches.
    """
    whole = {one.lower(): one for one in known}
    last = {one.rpartition("/")[2]: original for one, original in whole.items()}
    close = difflib.get_close_matches(name.lower(), [*whole, *last], n=2 * most, cutoff=cutoff)
    return list(dict.fromkeys({**last, **whole}[text] for text in close))[:most]


def meant(name: str, known: Iterable[str], most: int = 3) -> str:
    """`; did you mean …?` with the nearest names; empty if none is similar."""
    near = nearest(name, known, most, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def files_beside(typed: str) -> list[str]:
    """The files and folders where a path would be that does not exist, as they would be typed."""
    folder = Path(typed).parent
    return [str(folder / one.name) for one in folder.iterdir()] if folder.is_dir() else []


def unknown(what: str, name: str, known: Iterable[str]) -> UserError:
    """Such as: there is no task 'countdwn'; did you mean countdown? There are: countdown, math.

    Of many names the nearest stand for all.
    """
    known = list(known)
    text = meant(name, known)
    listed = f"There are: {', '.join(known)}"
    if len(known) > FEW:
        near = [] if text else nearest(name, known, cutoff=0.3)
        listed = f"There are {len(known)}" + (f", such as {', '.join(near or known[:3])}" if not text else "")
    return UserError(
        f"there is no {what} '{name}'{text or '.'} {listed}",
        code="unknown-name",
        kind=what,
        name=name,
    )
