"""The judge of TheoremQA's numbers, by the published tolerances, and without the published evaluation of text as code.

The rules are those of github.com/TIGER-AI-Lab/TheoremQA @acfc968 (number_utils.py). Where the gold answer is a whole
number, what rounds to it is right; where it is another number, what is within 4 % of it. A list is right if it has as
many numbers and, both in ascending order, each is right: so the order of a vector's components does not count.

It may take long on a hostile answer: call it only where it can be killed (grading.worker_pool).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from tasks.math_answers import answer_parts, by_math_verify, closed_forms, equations, formulas, units, values_at_points
from tasks.math_answers import judge as mathematics
from tasks.math_answers.exact_comparison import normalise
from tasks.math_answers.plain_notation import plain
from tasks.option_letters import without_markup

TOLERANCE = 0.04  # relative, of numbers that are not whole (number_utils.within_eps)
_PERCENT = re.compile(r"\s*\\?%$")
_BRACKETS = re.compile(r"\[(.*)\]", re.DOTALL)


def within_tolerance(value: float, expected: float) -> bool:
    """Whether a number is right; `expected` is an int where the data set has a whole number."""
    if isinstance(expected, int):
        return round(value) == expected
    return abs(value - expected) <= TOLERANCE * abs(expected)


def judge(gold: str, answer: str, meta: dict[str, Any] | None = None) -> str:
    """Judge a number, or a list of numbers: `correct`, `wrong`, or `ungradable` if the gold answer is none."""
    try:
        expected = json.loads(gold)
    except ValueError:
        return "ungradable"
    is_list = isinstance(expected, list)
    wanted = expected if is_list else [expected]
    if not wanted or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in wanted):
        return "ungradable"
    texts = list_members(answer) if is_list else [plain(without_markup(answer))]
    if len(texts) != len(wanted):
        return "wrong"
    numbers = [number_value(text) for text in texts]
    values = sorted(one for one in numbers if one is not None)
    right = len(values) == len(wanted) and all(map(within_tolerance, values, sorted(wanted)))
    return "correct" if right else "wrong"


def list_members(answer: str) -> list[str]:
    """The members of a list, set, tuple or vector, in plain notation."""
    text = plain(without_markup(answer))
    side = equations.answer_side(text)
    text = text if side is None else side
    if inside := _BRACKETS.fullmatch(text):
        text = f"({inside[1]})"  # `[1, 2]` is a list here, not an interval
    return (answer_parts.vector_parts(text) or answer_parts.read_parts(text)).parts


def number_value(text: str) -> float | None:
    """The value of an answer in plain notation, without symbol, sign of percent and unit; None if it has none."""
    text = equations.exact_and_rounded(text)[0]
    side = equations.answer_side(text)
    if side is None:
        return None
    bare = _PERCENT.sub("", side).strip()
    split = units.number_and_unit(bare)
    value = _parsed_value(split[0] if split else bare)
    return value / 100 if value is not None and bare != side.strip() else value


def _parsed_value(text: str) -> float | None:
    exact = closed_forms.closed_form_values(normalise(text))
    if exact is not None and len(exact) == 1 and "," not in normalise(text):
        return float(exact[0])
    formula = formulas.read(text)
    if formula and not formula.symbols:
        return values_at_points.number_value(formula)
    parsed, _ = by_math_verify.parse_whole(text, by_math_verify.LONGEST_PARSED)
    try:
        value = float(parsed.evalf(15))
    except Exception:  # sympy raises anything on what it cannot evaluate: no value
        return None
    return value if math.isfinite(value) else None


def warm_up() -> None:
    """As mathematics does."""
    mathematics.warm_up()
