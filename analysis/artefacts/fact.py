"""What describers of artefacts share: how they decline, and texts of counts and shares."""

from __future__ import annotations

from collections.abc import Iterable


class NotThis(Exception):
    """It is something else; the text says what it is not."""


def percent_text(share: float) -> str:
    """A share as `67.2 %`."""
    return f"{100 * share:.1f} %"


def listed(names: Iterable[object], most: int = 6) -> str:
    """The first names, and how many more there are."""
    texts = list(map(str, names))
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")
