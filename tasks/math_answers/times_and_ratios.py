"""Compare times of day: `3:30`, `15:30`, `3:30 p.m.`, `8 a.m.`, `noon`; and ratios of several numbers, `1:2:3`."""

from __future__ import annotations

import re

from tasks.math_answers import closed_forms
from tasks.math_answers.exact_comparison import normalise

_TIME = re.compile(
    r"(\d{1,2})\s*(?:\{?:\}?|\\colon)\s*([0-5]\d)\s*(?:\\(?:text|mathrm|mbox)\s*\{\s*)?(?:([ap])\.?\s*m\.?|o'clock)?\s*\}?",
    re.IGNORECASE,
)


_HOUR = re.compile(r"(\d{1,2})\s*(?:\\(?:text|mathrm|mbox)\s*\{\s*)?([ap])\.?\s*m\.?\s*\}?", re.IGNORECASE)
_NAMED = re.compile(r"(?:12(?::00)?)?\s*(?:\\(?:text|mathrm|mbox)\s*\{\s*)?(noon|midnight)\s*\}?", re.IGNORECASE)


def _read_time(text: str) -> tuple[int, int, str] | None:
    if named := _NAMED.fullmatch(text.strip()):
        return 12, 0, "p" if named[1].lower() == "noon" else "a"
    if (whole := _HOUR.fullmatch(text.strip())) and int(whole[1]) <= 12:
        return int(whole[1]), 0, whole[2].lower()
    match = _TIME.fullmatch(text.strip())
    if match is None or int(match[1]) > 24:
        return None
    return int(match[1]), int(match[2]), (match[3] or "").lower()


def compare(gold: str, answer: str) -> bool | None:
    """Compare two times; half of the day counts only where both state it. None if one of them is no time."""
    ours, theirs = _read_time(gold), _read_time(answer)
    if ours is None or theirs is None:
        return None
    return ours[1] == theirs[1] and bool(_possible_hours(ours) & _possible_hours(theirs))


def compare_ratios(gold: str, answer: str) -> bool | None:
    """Compare two ratios of three or more numbers, such as `1:2:3` and `2:4:6`; None if one of them is none."""
    both = [text.replace("\\colon", ":").split(":") for text in (gold, answer)]
    numbers = [[closed_forms.closed_form_values(normalise(part)) for part in parts] for parts in both]
    if min(map(len, both)) < 3 or any(values is None or len(values) != 1 for one in numbers for values in one):
        return None
    ours, theirs = ([values[0] for values in one if values] for one in numbers)
    return len(ours) == len(theirs) and all(a * theirs[0] == b * ours[0] for a, b in zip(ours, theirs, strict=True))


def _possible_hours(time: tuple[int, int, str]) -> set[int]:
    hour, _, half = time
    if half:
        return {hour % 12 + 12 * (half == "p")}
    return {hour % 24} if hour > 12 or hour == 0 else {hour % 12, hour % 12 + 12}
