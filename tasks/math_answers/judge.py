"""The judge of mathematics: math-verify, with guards on what math-verify 0.8.0 takes for equal.

It may hang or exhaust memory on a hostile answer: call it only where it can be killed (grading.worker_pool).
"""

from __future__ import annotations

import re
from typing import Any

from tasks.math_answers.exact import SCIENTIFIC, normalise
from tasks.math_answers.latex_symbols import has_symbols, readable

POINTS = (0.31, -0.73, 1.27, -1.9)  # at which expressions are compared
_ELLIPSIS = re.compile(r"\\[lcd]?dots|…|\.\.\.")


def _bad_gold(gold: str, parsed: list[Any]) -> bool:
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


def _equal_at_points(gold: Any, answer: Any) -> bool | None:
    """Whether two expressions are equal, as their values at two of four points show; None where those do not tell.

    Saves the seconds in which sympy fails to simplify the difference of unequal expressions to zero, and finds equal
    ones that it cannot prove, such as -ln x and ln(1/x). Points at which either has no real value do not count;
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
        except Exception:  # sympy's functions raise anything on values they cannot take: nothing learned
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

    Sequences abbreviated by an ellipsis are compared only exactly, and small numbers also relatively. `meta` may hold
    `unit` (dropped from the answer), `tolerance` (absolute) and `relative_tolerance`. math-verify's own time-outs are
    off: they use signals, which work in the main thread only.
    """
    from math_verify import parse, verify

    meta = meta or {}
    if _ELLIPSIS.search(gold) or _ELLIPSIS.search(answer):
        return "wrong"
    unit = (meta.get("unit") or "").strip("$ ")
    if unit and answer.endswith(unit):
        answer = answer.removesuffix(unit)
    gold, answer = (normalise(text) if SCIENTIFIC.fullmatch(text.strip("$ ")) else text for text in (gold, answer))
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


def warm_up() -> None:
    """Import math-verify and fill the caches of its LaTeX parser."""
    for gold, answer in (("2", "3"), ("\\frac{1}{2}", "0.5"), ("x^2+1", "(x+1)^2"), ("(1,2)", "\\{1,2\\}")):
        judge(gold, answer)
