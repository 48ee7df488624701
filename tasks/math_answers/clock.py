"""Times of day: `3:30`, `15:30`, `3:30 p.m.`."""

from __future__ import annotations

import re

_TIME = re.compile(
    r"(\d{1,2})\s*(?:\{?:\}?|\\colon)\s*([0-5]\d)\s*(?:\\(?:text|mathrm|mbox)\s*\{\s*)?(?:([ap])\.?\s*m\.?)?\s*\}?",
    re.IGNORECASE,
)


def _read(text: str) -> tuple[int, int, str] | None:
    found = _TIME.fullmatch(text.strip())
    if found is None or int(found[1]) > 24:
        return None
    return int(found[1]), int(found[2]), (found[3] or "").lower()


def compare(gold: str, answer: str) -> bool | None:
    """Compare two times; half of the day counts only where both state it. None if one of them is no time."""
    ours, theirs = _read(gold), _read(answer)
    if ours is None or theirs is None:
        return None
    return ours[1] == theirs[1] and bool(_hours(ours) & _hours(theirs))


def _hours(time: tuple[int, int, str]) -> set[int]:
    hour, _, half = time
    if half:
        return {hour % 12 + 12 * (half == "p")}
    return {hour % 24} if hour > 12 or hour == 0 else {hour % 12, hour % 12 + 12}
