"""The verifier of Countdown: does `(1 + 2) / 3` use exactly the given numbers, and is its value the target?

tasks/expressions.py evaluates the expression: whole numbers, + - * / (or × ÷ −) and brackets, never as code, in exact
arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tasks.expressions import Unparsable, Value, evaluate

TOLERANCE = Fraction(1, 10**5)  # TinyZero's; with exact arithmetic only for targets that are not integers


def read_target(text: str) -> Value:
    """The target as problem tables have it; ValueError if it is not a number."""
    try:
        return int(text)
    except ValueError:
        return Fraction(text)


def verify(expression: str, numbers: Sequence[int], target: Value) -> str:
    """Judge an expression.

    `correct`; `wrong` if a number is missing, used twice or not given, or if the value is not the target;
    `format_error` if the text is not an expression of +, -, *, / and integers; an equation with `=` is not.
    """
    try:
        value, used = evaluate(expression)
    except Unparsable:
        return "format_error"
    if value is None or sorted(used) != sorted(numbers):
        return "wrong"
    return "correct" if value == target or -TOLERANCE < value - target < TOLERANCE else "wrong"
