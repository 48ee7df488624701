"""Mathematical answers: exact comparison after a light normalisation, then math-verify with guards.

`judge` may hang or exhaust memory on a hostile answer: call it only where it can be killed (grading.worker_pool).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from tasks.math import closed_forms
from tasks.math.latex_symbols import has_symbols, readable

LONGEST_ANSWER = (
    4000  # characters; golds of the benchmarks have at most 300, and a longer "answer" is a degenerate text
)
POINTS = (0.31, -0.73, 1.27, -1.9)  # at which expressions are compared
_INVISIBLE = {"Cc", "Cf"}  # NUL bytes, right-to-left marks, zero-width spaces
_SPACING = re.compile(r"\\left(?![a-zA-Z])|\\right(?![a-zA-Z])|(?<!\\)\\[,;:! ]|\\q?quad(?![a-zA-Z])|~")
_FRACTION = re.compile(r"\\[dt]frac(?![a-zA-Z])")
_SHORT_FRACTION = re.compile(r"\\frac\s*(\d)\s*(\d)")
_ONE_TOKEN = re.compile(r"([_^])\{(\w)\}")
_SPACE = re.compile(r"(?<![a-zA-Z0-9])\s+|\s+(?![a-zA-Z0-9])")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:(?:,|\{,\})\d{3})+(?:\.\d+)?")
_INTEGER = re.compile(r"([-+]?)0*(\d+)(?:\.0*)?")
_SCIENTIFIC = re.compile(r"([-+]?\d{1,30}(?:\.\d{1,30})?)[eE]([-+]?\d{1,2})")
_CURRENCY = re.compile(r"(?<=^)([-+]?)\\\$(?=[\d.])")
_BASED = re.compile(r"(\d[\dA-F]*)(?:_\{?(\d{1,2})\}?)?")
_PERCENT = re.compile(r"\\?%$")
_ELLIPSIS = re.compile(r"\\[lcd]?dots|…|\.\.\.")


def normalise(answer: str) -> str:
    r"""One spelling for answers that differ only in writing.

    Strips invisible characters, math delimiters around the whole, spacing commands, `\left` and `\right`, white space
    that separates nothing, a full stop at the end, a dollar sign before an amount; writes `\dfrac`, `\tfrac` and
    `\frac12` as `\frac{1}{2}`, typographic minus signs as `-`, `1e-5` as a power of ten, and integers without
    separators, leading zeros or a zero fraction; drops the braces of a subscript or exponent of one character.
    """
    text = "".join(c if unicodedata.category(c) not in _INVISIBLE else " " * c.isspace() for c in answer)
    text = text.replace("−", "-").replace("–", "-").strip().rstrip(".").strip()
    for opening, closing in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
        inner = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing) and len(text) > 2 * len(opening) and "$" not in inner:
            text = inner
            break
    text = _FRACTION.sub(r"\\frac", _SPACING.sub("", text))
    text = _SPACE.sub("", _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text))
    text = _ONE_TOKEN.sub(r"\1\2", text)
    text = _CURRENCY.sub(r"\1", text)
    if _THOUSANDS.fullmatch(text):
        text = text.replace("{,}", "").replace(",", "")
    if scientific := _SCIENTIFIC.fullmatch(text):
        text = f"{scientific[1]}\\cdot10^{{{int(scientific[2])}}}"
    if integer := _INTEGER.fullmatch(text):
        sign = "-" if integer[1] == "-" and integer[2] != "0" else ""
        text = sign + integer[2]
    return text


def compare_exactly(gold: str, answer: str) -> bool | None:
    """Compare without sympy, in linear time; None where that cannot tell.

    True if the normalised answers are the same or closed forms of the same value; False if they are closed forms (or
    lists of them) further apart than the six decimals to which math-verify rounds, or if the answer is too long.
    A base (`17_8`) that one of the two leaves out is the other's. So is a percent sign: what is asked for in percent is
    `10` or `10%`.
    """
    gold, answer = normalise(gold), normalise(answer)
    if gold == answer:
        return True
    if (_INTEGER.fullmatch(gold) and _INTEGER.fullmatch(answer)) or len(answer) > max(LONGEST_ANSWER, 10 * len(gold)):
        return False
    same = _compare_bases(gold, answer)
    if same is not None:
        return same
    same = closed_forms.compare(gold, answer)
    if same is not True and bool(_PERCENT.search(gold)) != bool(_PERCENT.search(answer)):
        without = closed_forms.compare(_PERCENT.sub("", gold), _PERCENT.sub("", answer))
        return True if without else same
    return same


def _compare_bases(gold: str, answer: str) -> bool | None:
    """Compare two whole numbers of which one or both have a base as subscript; None for anything else."""
    numbers = [_BASED.fullmatch(text) for text in (gold, answer)]
    if not all(numbers) or not any(number and number[2] for number in numbers):
        return None
    ours, theirs = ((number[1].lstrip("0"), number[2]) for number in numbers if number)
    return ours[0] == theirs[0] and (ours[1] == theirs[1] or not ours[1] or not theirs[1])


def _bad_gold(gold: str, parsed: list[Any]) -> bool:
    """Nothing could be read, or only a string that is clearly meant as mathematics and broken."""
    if not parsed:
        return True
    only_text = all(isinstance(one, str) for one in parsed)
    return only_text and (gold.count("{") != gold.count("}") or gold.count("$") % 2 == 1)


def _differ_relatively(gold: Any, answer: Any, tolerance: float = 1e-4) -> bool:
    """math-verify compares numbers absolutely, so that 2^-99 equals 2^-98: true if both are numbers and far apart."""
    if not (getattr(gold, "is_number", False) and getattr(answer, "is_number", False)):
        return False
    size = max(abs(gold.evalf(15)), abs(answer.evalf(15)))
    return bool(size != 0 and size < 1 and abs((gold - answer).evalf(15)) > tolerance * size)


def _equal_at_points(gold: Any, answer: Any) -> bool | None:
    """Whether two expressions are equal, as their values at two of four points show; None where those do not tell.

    Spares the seconds in which sympy fails to simplify the difference of unequal expressions to zero, and finds the
    equal ones that it cannot prove, such as -ln x and ln(1/x). Points at which either has no real value say nothing;
    expressions equal at two others (to nine digits) and different at none are equal. Plain numbers and percentages
    are left to math-verify, which rounds them, and so are single symbols, which may be words.
    """
    import sympy

    expressions = (gold, answer)
    if not all(isinstance(one, sympy.Expr) and not one.is_Number and not one.is_Symbol for one in expressions):
        return None
    symbols = sorted(gold.free_symbols | answer.free_symbols, key=str)
    if not symbols and any(one.has(sympy.Float) or isinstance(one, sympy.Mul) for one in expressions):
        return None
    same, far = 0, 0
    for start in POINTS if symbols else POINTS[:1]:
        point = {symbol: start + 0.173 * i / len(symbols) for i, symbol in enumerate(symbols)}
        try:
            expected, found = (one.evalf(15, subs=point) for one in expressions)
        except Exception:  # sympy's functions raise what they like on values they cannot take: nothing learned
            continue
        if not (expected.is_Float and found.is_Float):
            continue
        difference, size = abs(expected - found), max(abs(expected), abs(found), 1e-9)
        same += bool(difference <= 1e-9 * size)
        far += bool(difference > 1e-6 * size)
        if max(same, far) == 2:
            break
    if far and not same:
        return False
    return True if same >= 2 and not far else None


def _within(gold: Any, answer: Any, meta: dict[str, Any]) -> bool:
    """Whether two numbers agree within the problem's own `tolerance` (absolute) or `relative_tolerance`.

    Where each of several answers has a tolerance of its own, the smallest holds for all.
    """
    absolute, relative = meta.get("tolerance"), meta.get("relative_tolerance")
    if absolute is None and relative is None:
        return False
    if isinstance(absolute, list):
        absolute = min(absolute, default=None)
    try:
        expected, found = float(gold), float(answer)
    except (TypeError, ValueError, OverflowError):
        return False
    return abs(expected - found) <= max(float(absolute or 0), float(relative or 0) * abs(expected))


def judge(gold: str, answer: str, meta: dict[str, Any] | None = None) -> str:
    """Judge an answer with math-verify: `correct`, `wrong`, or `ungradable` if the gold answer cannot be read.

    Guards on what math-verify 0.8.0 takes for equal: sequences abbreviated by an ellipsis are compared only exactly,
    and small numbers also relatively. `meta` may hold `unit` (dropped from the answer), `tolerance`
    (absolute) and `relative_tolerance`. Time-outs inside math-verify are switched off: they use signals, which work
    in the main thread only.
    """
    from math_verify import parse, verify

    meta = meta or {}
    if _ELLIPSIS.search(gold) or _ELLIPSIS.search(answer):
        return "wrong"
    unit = (meta.get("unit") or "").strip("$ ")
    if unit and answer.endswith(unit):
        answer = answer.removesuffix(unit)
    gold, answer = (normalise(text) if _SCIENTIFIC.fullmatch(text.strip("$ ")) else text for text in (gold, answer))
    source, symbols = gold.replace("\\$", ""), has_symbols(gold)
    gold, answer = readable(gold, symbols), readable(answer, symbols)
    golds = parse(f"\\boxed{{{gold}}}", parsing_timeout=None)
    if _bad_gold(source, golds):
        return "ungradable"
    answers = parse(f"\\boxed{{{answer}}}", parsing_timeout=None)
    for expected in golds:
        for found in answers:
            if not isinstance(expected, str) and not isinstance(found, str):
                if _within(expected, found, meta):
                    return "correct"
                if (equal := _equal_at_points(expected, found)) is not None:
                    if equal:
                        return "correct"
                    continue
            if verify(expected, found, timeout_seconds=None) and not _differ_relatively(expected, found):
                return "correct"
    return "wrong"
