"""Whole numbers below a hundred in words: `seven`, `twenty-one`, `二十一`; also beside digits or before a unit."""

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


_BESIDE_DIGITS = re.compile(r"([\d,]+)\s*\(\s*([a-zA-Z -]{3,20}?)\s*\)")
_BEFORE_UNIT = re.compile(r"([a-zA-Z]{3,9}(?:-[a-zA-Z]{3,5})?)(\s[a-zA-Z]{3,15}){1,2}")
_CHINESE_FRACTION = re.compile(r"(.{1,3})分之(.{1,3})")


def in_digits(text: str) -> str | None:
    """The number that a text is the name of, in digits, with the unit behind it; None for any other text."""
    text = text.strip()
    if (both := _BESIDE_DIGITS.fullmatch(text)) and _whole_number(both[2]) == both[1]:
        return both[1]
    if (fraction := _CHINESE_FRACTION.fullmatch(text)) and all(
        parts := [_whole_number(one) for one in fraction.groups()]
    ):
        return f"\\frac{{{parts[1]}}}{{{parts[0]}}}"
    number, counted = _whole_number(text), _BEFORE_UNIT.fullmatch(text)
    if number is None and counted and (first := _whole_number(counted[1])):
        return f"{first} \\text{{{text[len(counted[1]) :]}}}"
    return number


def is_number(word: str) -> bool:
    """Whether a word is the name of a number, or a part of one: `two`, `point`."""
    return word == "point" or word in _VALUES


def _whole_number(text: str) -> str | None:
    if match := _CHINESE_NUMBER.fullmatch(text):
        return str(10 * (_CHINESE[match[1]] or 1) + _CHINESE[match[2]])
    value = _VALUES.get("-".join(text.lower().split()), _CHINESE.get(text or " "))
    return None if value is None else str(value)
