"""The judge of mathematics: parts compared one by one, and math-verify with guards on what it takes for equal.

It may hang or exhaust memory on a hostile answer: call it only where it can be killed (grading.worker_pool).
"""

from __future__ import annotations

import re
from typing import Any

from tasks.math_answers import (
    answer_parts,
    equations,
    intervals,
    numbers_in_words,
    times_and_ratios,
    units,
    values_at_points,
)
from tasks.math_answers.exact_comparison import SCIENTIFIC, compare_exactly, normalise
from tasks.math_answers.latex_symbols import for_math_verify, has_symbols
from tasks.math_answers.plain_notation import has_degrees, plain

_MEMBER = re.compile(rf"^\s*{intervals.SYMBOL}\s*\\in(?![a-zA-Z])")
_WRAPPED = re.compile(
    r"(?:\\(?:text|textbf|mathrm|mathbf|mbox|boldsymbol|underline)|\\(?:text)?color\s*\{\w{1,20}\})\s*\{([^{}]*)\}|\*\*([^*]*)\*\*"
)
_ANNOUNCED = re.compile(r"\\text\s*\{\s*(?:the )?(?:final )?answer(?: is)?:?\s*\}\s*:?", re.IGNORECASE)
_MONEY = re.compile(r"([-+]?)\\\$\s*(\d[\d,]{0,30}(?:\.\d{1,9})?)")
_PERCENT = re.compile(r"\s*\\?%$")
_LETTER_OF_CHOICE = re.compile(r"^\s*\\(?:text|textbf|mathrm)\s*\{\s*\(([A-E])\)\s*\}(?=.*\w)")
_WORDS = re.compile(r"[a-zA-Z]{3,30}(?: [a-zA-Z]{1,30}){0,9}")
_EMPTY = re.compile(
    r"\$?(?:\\(?:emptyset|varnothing)|∅|\\\{\s*\\\}|empty set|"
    r"(?:there (?:is|are) )?no (?:real )?solutions?(?: exists?)?)\.?\$?",
    re.IGNORECASE,
)
_RADIANS = re.compile(r"\\pi(?![a-zA-Z])|π|(?<![a-zA-Z\\])rad(?:ians?)?(?![a-zA-Z])")
_ELLIPSIS = re.compile(r"\\[lcd]?dots|…|\.\.\.")


def _is_unusable_gold(gold: str, parsed: list[Any]) -> bool:
    """Nothing could be read, or only a string that is clearly meant as mathematics and broken."""
    if not parsed:
        return True
    only_text = all(isinstance(one, str) for one in parsed)
    return only_text and (gold.count("{") != gold.count("}") or gold.count("$") % 2 == 1)


def _differ_relatively(gold: Any, answer: Any, tolerance: float = 1e-4) -> bool:
    """True for numbers that are far apart relatively: math-verify compares absolutely, so that 2^-99 equals 2^-98."""
    if not (getattr(gold, "is_number", False) and getattr(answer, "is_number", False)):
        return False
    size = max(abs(gold.evalf(15)), abs(answer.evalf(15)))
    return bool(size != 0 and size < 1 and abs((gold - answer).evalf(15)) > tolerance * size)


def _is_within_tolerance(gold: Any, answer: Any, meta: dict[str, Any]) -> bool:
    """Whether two numbers agree within the problem's own `tolerance` (absolute) or `relative_tolerance`.

    Where each of several answers has a tolerance of its own, the smallest holds for all.
    """
    absolute, relative = meta.get("tolerance"), meta.get("relative_tolerance")
    if absolute is None and relative is None:
        return False
    if isinstance(absolute, list):
        absolute = min(absolute, default=None)
    try:
        expected, value = float(gold), float(answer)
    except (TypeError, ValueError, OverflowError):
        return False
    return abs(expected - value) <= max(float(absolute or 0), float(relative or 0) * abs(expected))


def _has_tolerance(meta: dict[str, Any]) -> bool:
    return meta.get("tolerance") is not None or meta.get("relative_tolerance") is not None


def _judge_plain(gold: str, answer: str, meta: dict[str, Any]) -> str:
    """The verdict on two answers in plain notation, or on two parts of them."""
    gold, answer = (_MEMBER.sub("", text).strip() for text in (gold, answer))
    if _PERCENT.search(gold) and _PERCENT.search(answer):
        gold, answer = (_PERCENT.sub("", text) for text in (gold, answer))
    same = compare_exactly(gold, answer)
    if same or (same is False and not _has_tolerance(meta)):
        return _verdict(same)
    for compare in (
        times_and_ratios.compare,
        times_and_ratios.compare_ratios,
        equations.compare_residues,
        intervals.compare,
    ):
        if (same := compare(gold, answer)) is not None:
            return _verdict(same)
    same = answer_parts.compare(gold, answer, lambda one, other: _judge_plain(one, other, meta) == "correct")
    return _judge_single(gold, answer, meta) if same is None else _verdict(same)


def _judge_single(gold: str, answer: str, meta: dict[str, Any]) -> str:
    """The verdict on two answers without parts."""
    exact, rounded = equations.exact_and_rounded(answer)
    if rounded:  # the exact value stands before the sign, or the rounded one is asked for
        return (
            "correct" if "correct" in (_judge_plain(gold, exact, meta), _judge_plain(gold, rounded, meta)) else "wrong"
        )
    ours, theirs = len(equations.sides(gold)), len(equations.sides(answer))
    if ours != theirs or ours > 2:
        expected_side, found_side = equations.answer_side(gold), equations.answer_side(answer)
        if found_side is None:
            return "wrong"
        if expected_side is None or (expected_side == gold and found_side == answer):
            return _by_math_verify(gold, answer, meta)
        return _judge_plain(expected_side, found_side, meta)
    if ours == theirs == 2 and (values := equations.right_sides(gold, answer)):
        return _judge_plain(*values, meta)
    if equations.has_relation(answer) and not equations.has_relation(gold):
        return "wrong"
    if (
        ours == 1
        and not _has_tolerance(meta)
        and (total := units.total_quantity(gold))
        and (found_total := units.total_quantity(answer))
    ):
        return _verdict(total == found_total)
    if ours == 1 and (expected := units.number_and_unit(gold)) is not None and not has_symbols(gold):
        answer_split = units.number_and_unit(answer)
        if answer_split is None:
            if units.has_words(answer):
                return "wrong"
            return _by_math_verify(expected[0], answer, meta)
        ratio = units.conversion_factor(expected[1], answer_split[1])
        if ratio is None:
            return "wrong"
        gold, answer = expected[0], answer_split[0] if ratio == 1 else f"({answer_split[0]})\\cdot {ratio:f}"
        same = compare_exactly(gold, answer)
        if same is not None and not _has_tolerance(meta):
            return _verdict(same)
    return _by_math_verify(gold, answer, meta)


def _verdict(same: bool) -> str:
    return "correct" if same else "wrong"


def judge(gold: str, answer: str, meta: dict[str, Any] | None = None) -> str:
    """Judge an answer: `correct`, `wrong`, or `ungradable` if the gold answer cannot be read.

    Sequences abbreviated by an ellipsis are compared only exactly, and small numbers also relatively. `meta` may hold
    `unit` (dropped from the answer), `tolerance` (absolute) and `relative_tolerance`.
    """
    from sympy.core.random import seed

    seed(0)  # sympy draws numbers to compare expressions: the same ones whatever was judged before
    meta = meta or {}
    if _ELLIPSIS.search(gold) or _ELLIPSIS.search(answer):
        return "wrong"
    unit = (meta.get("unit") or "").strip("$ ")
    if unit and answer.endswith(unit):
        answer = answer.removesuffix(unit)
    if gold.count("{") != gold.count("}") or gold.replace("\\$", "").count("$") % 2 == 1:
        return _by_math_verify(gold, answer, meta)
    letter = _without_wrapping(gold).strip("() ")
    if (choice := _LETTER_OF_CHOICE.match(answer)) and letter in tuple("ABCDE"):
        return _verdict(choice[1] == letter)
    gold, answer = (_LETTER_OF_CHOICE.sub("", _without_wrapping(text)) for text in (gold, answer))
    if (_WORDS.fullmatch(gold) and gold.casefold() == answer.casefold()) or (
        _EMPTY.fullmatch(gold) and _EMPTY.fullmatch(answer)
    ):
        return "correct"
    return _judge_plain(*_in_one_measure(gold, answer), meta)


def _in_one_measure(gold: str, answer: str) -> tuple[str, str]:
    r"""Both in plain notation; an angle in degrees beside one in parts of `\pi` as such a part."""
    ours, theirs = plain(gold), plain(answer)
    kinds = [(has_degrees(text), bool(_RADIANS.search(text))) for text in (gold, answer)]
    if kinds == [(True, False), (False, True)]:
        return _in_radians(ours), theirs
    return ours, _in_radians(theirs) if kinds == [(False, True), (True, False)] else theirs


def _in_radians(degrees: str) -> str:
    return f"({degrees})\\cdot\\frac{{\\pi}}{{180}}"


def _without_wrapping(text: str) -> str:
    """An answer without what is around the whole of it, a number in words as a number, an amount with its unit."""
    text = _ANNOUNCED.sub("", text.strip()).strip()
    if whole := _WRAPPED.fullmatch(text.strip("$") if not text.startswith("\\$") else text):
        text = whole[1] or whole[2] or ""
    if amount := _MONEY.fullmatch(text):
        text = f"{amount[1]}{amount[2]} \\text{{ dollars}}"
    return numbers_in_words.in_digits(text) or text


def _by_math_verify(gold: str, answer: str, meta: dict[str, Any]) -> str:
    """The verdict of math-verify, whose own time-outs are off: they use signals, which the worker needs."""
    from math_verify import LatexExtractionConfig, parse, verify

    gold, answer = (normalise(text) if SCIENTIFIC.fullmatch(text.strip("$ ")) else text for text in (gold, answer))
    source, symbols = gold.replace("\\$", ""), has_symbols(gold)
    gold, answer = for_math_verify(gold, symbols), for_math_verify(answer, symbols)
    golds = parse(f"\\boxed{{{gold}}}", parsing_timeout=None)
    if _is_unusable_gold(source, golds):
        return "ungradable"
    # As LaTeX alone: otherwise an answer that cannot be read would be its last number
    answers = parse(f"\\boxed{{{answer}}}", [LatexExtractionConfig()], parsing_timeout=None)
    for expected in golds:
        for parsed in answers:
            if not isinstance(expected, str) and not isinstance(parsed, str):
                if _is_within_tolerance(expected, parsed, meta):
                    return "correct"
                if (equal := values_at_points.compare(expected, parsed)) is not None:
                    if equal:
                        return "correct"
                    continue
            if verify(expected, parsed, timeout_seconds=None) and not _differ_relatively(expected, parsed):
                return "correct"
    return "wrong"


def warm_up() -> None:
    """Import math-verify and fill the caches of its LaTeX parser."""
    for gold, answer in (("2", "3"), ("\\frac{1}{2}", "0.5"), ("x^2+1", "(x+1)^2"), ("(1,2)", "\\{1,2\\}")):
        judge(gold, answer)
