"""Whole numbers below a hundred in words: `seven`, `twenty-one`, `二十一`."""

from __future__ import annotations

import re

_SMALL = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_VALUES = {word: value for value, word in enumerate(_SMALL)}
_VALUES |= {word: 10 * tens for tens, word in enumerate(_TENS, start=2)}
_VALUES |= {f"{word}-{_SMALL[unit]}": _VALUES[word] + unit for word in _TENS for unit in range(1, 10)}
_CHINESE = {word: value for value, word in enumerate("零一二三四五六七八九")} | {"两": 2, "": 0}
_CHINESE_NUMBER = re.compile(r"([二三四五六七八九]?)十([一二三四五六七八九]?)")


def in_digits(text: str) -> str | None:
    """The number that a text is the name of, in digits; None for any other text."""
    if match := _CHINESE_NUMBER.fullmatch(text.strip()):
        return str(10 * (_CHINESE[match[1]] or 1) + _CHINESE[match[2]])
    value = _VALUES.get("-".join(text.strip().lower().split()), _CHINESE.get(text.strip() or " "))
    return None if value is None else str(value)
