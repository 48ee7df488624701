"""Countdown: is `(1 + 2) / 3` made of exactly the given numbers, and does it reach the target? (the verifier)

The expression is parsed, never evaluated as code:

    sum     = product (("+" | "-") product)*
    product = atom (("*" | "/") atom)*
    atom    = integer | "(" sum ")" | ("+" | "-") atom
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

TOLERANCE = Fraction(1, 10**5)  # TinyZero's; with exact arithmetic only for targets that are not integers
LONGEST = 300  # characters: six numbers need about 40
_TOKEN = re.compile(r"\s*((?:[1-9]\d{0,11}|0)(?!\d)|[-+*/()])")  # no leading zeros, as in Python


class Unparsable(ValueError):
    """The text is no arithmetic expression."""


class _Reader:
    def __init__(self, text: str) -> None:
        text = text.strip().replace("×", "*").replace("÷", "/").replace("−", "-")
        if len(text) > LONGEST or not text.isascii():
            raise Unparsable
        self.tokens: list[str] = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if not match:
                raise Unparsable
            self.tokens.append(match[1])
            position = match.end()
        self.tokens.append("")
        self.at = 0
        self.numbers: list[int] = []

    @property
    def next(self) -> str:
        return self.tokens[self.at]

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def sum(self) -> Fraction:
        value = self.product()
        while self.next in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self) -> Fraction:
        value = self.atom()
        while self.next in ("*", "/"):
            value = value * self.atom() if self.take() == "*" else value / self.atom()
        return value

    def atom(self) -> Fraction:
        token = self.take()
        if token == "-":
            return -self.atom()
        if token == "+":
            return self.atom()
        if token == "(":
            value = self.sum()
            if self.take() != ")":
                raise Unparsable
            return value
        if not token.isdigit():
            raise Unparsable
        self.numbers.append(int(token))
        return Fraction(int(token))


def evaluate(expression: str) -> tuple[Fraction | None, list[int]]:
    """Value (None where it divides by zero) and numbers of an expression. Raises Unparsable."""
    reader = _Reader(expression)
    try:
        value = reader.sum()
    except ZeroDivisionError:
        return None, [int(token) for token in reader.tokens if token.isdigit()]
    if reader.next:
        raise Unparsable
    return value, reader.numbers


def verify(expression: str, numbers: Sequence[int], target: Fraction | int | str) -> str:
    """Judge an expression.

    `correct`; `wrong` if a number is missing, used twice or not given, or if the value is not the target;
    `format_error` if the text is no expression of +, -, *, / and integers (an equation with `=` is none).
    """
    try:
        value, used = evaluate(expression)
    except Unparsable:
        return "format_error"
    if value is None or Counter(used) != Counter(int(number) for number in numbers):
        return "wrong"
    return "correct" if abs(value - Fraction(target)) < TOLERANCE else "wrong"
