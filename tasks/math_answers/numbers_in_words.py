"""Whole numbers below a hundred in English words: `seven`, `twenty-one`."""

from __future__ import annotations

_SMALL = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_VALUES = {word: value for value, word in enumerate(_SMALL)}
_VALUES |= {word: 10 * tens for tens, word in enumerate(_TENS, start=2)}
_VALUES |= {f"{word}-{_SMALL[unit]}": _VALUES[word] + unit for word in _TENS for unit in range(1, 10)}


def in_digits(text: str) -> str | None:
    """The number that a text is the name of, in digits; None for any other text."""
    value = _VALUES.get("-".join(text.strip().lower().split()))
    return None if value is None else str(value)
