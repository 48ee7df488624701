"""The verifier of Countdown: does `(1 + 2) / 3` use exactly the given numbers, and is its value the target?

The expression is parsed, never evaluated as code:

    sum     = product (("+" | "-") product)*
    product = atom (("*" | "/") atom)*
    atom    = integer | "(" sum ")" | ("+" | "-") atom
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

TOLERANCE = Fraction(1, 10**5)  # TinyZero's; with exact arithmetic only for targets that are not integers
LONGEST = 300  # characters: six numbers need about 40
_TOKEN = re.compile(r"[1-9]\d{0,11}(?!\d)|0(?!\d)|[-+*/()]")  # no leading zeros, as in Python
_TOKENS = re.compile(rf"(?:\s*(?:{_TOKEN.pattern}))+\s*")
_SIGNS = str.maketrans("×÷−", "*/-")

Value = int | Fraction  # whole wherever it can be, which is many times faster


class Unparsable(ValueError):
    """The text is not an arithmetic expression."""


class _Reader:
    def __init__(self, expression: str) -> None:
        text = expression.strip().translate(_SIGNS)
        if len(text) > LONGEST or not text.isascii() or not _TOKENS.fullmatch(text):
            raise Unparsable
        self.tokens = [*_TOKEN.findall(text), ""]
        self.at = 0

    def sum(self) -> Value:
        value = self.product()
        while (sign := self.tokens[self.at]) in ("+", "-"):
            self.at += 1
            value = value + self.product() if sign == "+" else value - self.product()
        return value

    def product(self) -> Value:
        value = self.atom()
        while (sign := self.tokens[self.at]) in ("*", "/"):
            self.at += 1
            right = self.atom()
            if sign == "*":
                value = value * right
            else:
                quotient, remainder = divmod(value, right)
                value = Fraction(value) / right if remainder else int(quotient)
        return value

    def atom(self) -> Value:
        token = self.tokens[self.at]
        self.at += 1
        if token.isdigit():
            return int(token)
        if token == "(":
            value = self.sum()
            if self.tokens[self.at] != ")":
                raise Unparsable
            self.at += 1
            return value
        if token in ("+", "-"):
            return self.atom() if token == "+" else -self.atom()
        raise Unparsable


def evaluate(expression: str) -> tuple[Value | None, list[int]]:
    """Value (None where it divides by zero) and numbers of an expression. Raises Unparsable."""
    reader = _Reader(expression)
    numbers = [int(token) for token in reader.tokens if token.isdigit()]
    try:
        value = reader.sum()
    except ZeroDivisionError:
        return None, numbers
    if reader.at != len(reader.tokens) - 1:
        raise Unparsable
    return value, numbers


def number(text: str) -> Value:
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
