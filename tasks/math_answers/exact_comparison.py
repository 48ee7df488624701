"""Exact comparison of mathematical answers after a light normalisation: safe and linear, whatever a model wrote."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

from tasks.math_answers import closed_forms

# Characters. Gold answers of the benchmarks have at most 300; a longer "answer" is a degenerate text.
LONGEST_ANSWER = 4000
_HALF_WIDTH = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)} | str.maketrans("、。　", ",. ")
_INVISIBLE = {"Cc", "Cf"}  # NUL bytes, right-to-left marks, zero-width spaces
_SPACING = re.compile(r"\\left(?![a-zA-Z])|\\right(?![a-zA-Z])|(?<!\\)\\[,;:! ]|\\q?quad(?![a-zA-Z])|~")
_FRACTION = re.compile(r"\\[dt]frac(?![a-zA-Z])")
_SHORT_FRACTION = re.compile(r"\\frac\s*(\d)\s*(\d)")
_ONE_TOKEN = re.compile(r"([_^])\{(\w)\}")
_SPACE = re.compile(r"(?<![a-zA-Z0-9])\s+|\s+(?![a-zA-Z0-9])")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:(?:,|\{,\})\d{3})+(?:\.\d+)?")
_LISTED = re.compile(r",(?:\s|\\[,;: ]|~)")  # a comma and a space: a list, not thousands
_INTEGER = re.compile(r"([-+]?)(\d++)(?:\.0*+)?")  # possessive: what follows a million digits is looked at once
SCIENTIFIC = re.compile(r"([-+]?\d{1,30}(?:\.\d{1,30})?)[eE]([-+]?\d{1,2})")
_CURRENCY = re.compile(r"(?<=^)([-+]?)\\\$(?=[\d.])")
_BASED = re.compile(r"(\d[\dA-F]*)(?:_\{?(\d{1,2})\}?)?")
# Towers of three powers, factorials and powers of a million: nobody's answer, and a judge's whole deadline each
_HUGE = re.compile(
    r"(?:(?:\^|\*\*)\s*[{(]*\s*-?(?:\d{1,20}|[a-zA-Z])\s*){3}|(?<!\d)\d{6,}+\s*!|(?:\^|\*\*)\s*[{(]*\s*\d{7,}"
)
_POWER_OF_TEN = re.compile(r"([-+]?\d{1,30}(?:\.\d{1,30})?)(?:\\(?:cdot|times)10\^\{?(-?\d{1,3})\}?)?")
_PERCENT = re.compile(r"\\?%$")


def half_width(text: str) -> str:
    """Full-width digits, letters and signs, and the Chinese comma and full stop, as ASCII has them."""
    return text if text.isascii() else text.translate(_HALF_WIDTH)


def normalise(answer: str) -> str:
    r"""One spelling for answers that differ only in writing.

    Strips invisible characters, math delimiters around the whole, spacing commands, `\left` and `\right`, white space
    that separates nothing, a full stop at the end, a dollar sign before an amount; writes `\dfrac`, `\tfrac` and
    `\frac12` as `\frac{1}{2}`, typographic minus signs as `-`, `1e-5` as a power of ten, and integers without
    separators, leading zeros or a zero fraction; drops the braces of a subscript or exponent of one character.
    """
    text = "".join(c if unicodedata.category(c) not in _INVISIBLE else " " * c.isspace() for c in half_width(answer))
    text = " ".join(text.replace("−", "-").replace("–", "-").split()).rstrip(".").strip()
    for opening, closing in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
        inner = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing) and len(text) > 2 * len(opening) and "$" not in inner:
            text = inner
            break
    if listed := _LISTED.search(text) is not None:
        text = ", ".join(part.replace(",", "") if _THOUSANDS.fullmatch(part) else part for part in _LISTED.split(text))
    text = _FRACTION.sub(r"\\frac", _SPACING.sub("", text))
    text = _SPACE.sub("", _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text))
    text = _ONE_TOKEN.sub(r"\1\2", text)
    text = _CURRENCY.sub(r"\1", text)
    if not listed and _THOUSANDS.fullmatch(text):
        text = text.replace("{,}", "").replace(",", "")
    if scientific := SCIENTIFIC.fullmatch(text):
        text = f"{scientific[1]}\\cdot10^{{{int(scientific[2])}}}"
    if integer := _INTEGER.fullmatch(text):
        digits = integer[2].lstrip("0") or "0"
        text = "-" * (integer[1] == "-" and digits != "0") + digits
    return text


def is_huge(answer: str) -> bool:
    """Whether a short answer stands for a number that no machine can write down."""
    return _HUGE.search(answer[:LONGEST_ANSWER]) is not None


def compare_exactly(gold: str, answer: str) -> bool | None:
    """Compare without sympy, in linear time; None where that cannot tell.

    True if the normalised answers are the same or closed forms of the same value; False if they are closed forms (or
    lists of them) further apart than the six decimals to which math-verify rounds, or if the answer is too long.
    A base (`17_8`) or a percent sign that only one of the two states counts for both.
    """
    if len(answer) > 10 * max(LONGEST_ANSWER, len(gold)):
        return False
    gold, answer = half_width(gold), half_width(answer)
    if _LISTED.search(gold) and not _LISTED.search(answer):
        answer = answer.replace(",", ", ")  # no thousands there either
    gold, answer = normalise(gold), normalise(answer)
    if gold == answer:
        return True
    if (_INTEGER.fullmatch(gold) and _INTEGER.fullmatch(answer)) or len(answer) > max(LONGEST_ANSWER, 10 * len(gold)):
        return False
    same = _compare_bases(gold, answer)
    if same is not None:
        return same
    if _same_power_of_ten(gold, answer):
        return True
    same = closed_forms.compare(gold, answer)
    if same is not True and bool(_PERCENT.search(gold)) != bool(_PERCENT.search(answer)):
        without = closed_forms.compare(_PERCENT.sub("", gold), _PERCENT.sub("", answer))
        return True if without else same
    return same


def _same_power_of_ten(gold: str, answer: str) -> bool:
    """Whether both are numbers in scientific notation, or plain ones, of exactly the same value."""
    both = [_POWER_OF_TEN.fullmatch(text) for text in (gold, answer)]
    values = [Decimal(one[1]).scaleb(int(one[2] or 0)) for one in both if one]
    return len(values) == 2 and values[0] == values[1]


def _compare_bases(gold: str, answer: str) -> bool | None:
    """Compare two whole numbers of which one or both have a base as subscript; None for anything else."""
    numbers = [_BASED.fullmatch(text) for text in (gold, answer)]
    if not all(numbers) or not any(number and number[2] for number in numbers):
        return None
    ours, theirs = ((number[1].lstrip("0"), number[2]) for number in numbers if number)
    return ours[0] == theirs[0] and (ours[1] == theirs[1] or not ours[1] or not theirs[1])
