r"""The value of plain numeric LaTeX, such as `\frac{1+\sqrt{5}}{2}`, without sympy: in microseconds, not 20 ms.

What is outside the small grammar here has no value (None), and is left to
math-verify.

    list    = sum ("," sum)*
    sum     = ["+" | "-"] product (("+" | "-") product)*
    product = power (["*" | "/" | "\cdot" | "\times"] power)*
    power   = atom ["^" (digit | "{" sum "}")]
    atom    = number | "\pi" | "(" sum ")" | "\frac{" sum "}{" sum "}" | "\sqrt" ["[" sum "]"] "{" sum "}"
"""

from __future__ import annotations

import re
from decimal import Context, Decimal, DecimalException, DivisionByZero, InvalidOperation, Overflow, Underflow

_TOKEN = re.compile(r"\s*(\d+\.?\d*|\.\d+|\\(?:frac|sqrt|pi|cdot|times)(?![a-zA-Z])|[-+*/^(){}\[\],])")
_PI = Decimal("3.14159265358979323846264338327950288419716939937510")
_ARITHMETIC = Context(prec=50, Emax=99, Emin=-9999, traps=[DivisionByZero, InvalidOperation, Overflow, Underflow])
_LARGEST = Decimal(10) ** 20  # with 50 digits, what cancels below this size still leaves 30 digits
_MOST_APART = 20  # digits between terms: what a small one adds is not lost
_LONGEST = 300  # characters
_MOST_BRACKETS = 60  # so that nesting cannot exhaust the stack


class _Outside(Exception):
    """The text is not a plain closed form."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if not match:
                raise _Outside
            self.tokens.append(match[1])
            position = match.end()
        self.tokens.append("")
        self.at = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at]

    def take(self, *expected: str) -> str:
        if expected and self.next not in expected:
            raise _Outside
        self.at += 1
        return self.tokens[self.at - 1]

    def braced(self, opening: str = "{", closing: str = "}") -> Decimal:
        self.take(opening)
        value = self.sum()
        self.take(closing)
        return value

    def sum(self) -> Decimal:
        negative = self.next in ("+", "-") and self.take() == "-"
        value = self.product()
        value = -value if negative else value
        while self.next in ("+", "-"):
            other = self.product() if self.take() == "+" else -self.product()
            if value and other and abs(value.adjusted() - other.adjusted()) > _MOST_APART:
                raise _Outside
            value = _ARITHMETIC.add(value, other)
        return _check_size(value)

    def product(self) -> Decimal:
        value = self.power()
        while True:
            if self.next in ("*", "/", "\\cdot", "\\times"):
                operation = _ARITHMETIC.divide if self.take() == "/" else _ARITHMETIC.multiply
                value = operation(value, self.power())
            elif self.next in ("(", "\\sqrt", "\\pi"):
                value = _ARITHMETIC.multiply(value, self.power())
            elif self.next and self.next not in "+-,)}]":
                raise _Outside  # two numbers side by side, or a mixed number: what they mean is not ours to say
            else:
                return _check_size(value)

    def power(self) -> Decimal:
        value = self.atom()
        if self.next == "^":
            self.take()
            exponent = self.braced() if self.next == "{" else Decimal(self.digit())
            value = _ARITHMETIC.power(value, exponent)
        return _check_size(value)

    def digit(self) -> str:
        token = self.take()
        if len(token) != 1 or not token.isdecimal():
            raise _Outside
        return token

    def atom(self) -> Decimal:
        token = self.take()
        if token == "\\frac":
            above = self.braced()
            return _ARITHMETIC.divide(above, self.braced())
        if token == "\\sqrt":
            root = self.braced("[", "]") if self.next == "[" else None
            inside = self.braced()
            return _ARITHMETIC.sqrt(inside) if root is None else _ARITHMETIC.power(inside, _ARITHMETIC.divide(1, root))
        if token == "\\pi":
            return _PI
        if token == "(":
            self.at -= 1
            return self.braced("(", ")")
        if not token[:1].isdecimal() and token[:1] != ".":
            raise _Outside
        return Decimal(token)


def _check_size(value: Decimal) -> Decimal:
    if not value.is_finite() or abs(value) > _LARGEST:
        raise _Outside
    return value


def closed_form_values(text: str) -> list[Decimal] | None:
    """Values of the comma-separated closed forms in a normalised answer, ascending, each once; else None."""
    if len(text) > _LONGEST or sum(map(text.count, "({[")) > _MOST_BRACKETS:
        return None
    try:
        reader = _Reader(text)
        distinct = {reader.sum()}
        while reader.next == ",":
            reader.take()
            distinct.add(reader.sum())
        reader.take("")
    except (_Outside, DecimalException):
        return None
    return sorted(distinct)


def compare(first: str, second: str) -> bool | None:
    """Compare two normalised answers that are closed forms or lists of them; None if one is neither, or if unsure.

    True for two numbers that agree to 45 of 50 digits; False for values that differ by more than 1e-5 (closer ones are
    left to math-verify's rounding) or for a different number of different values.
    """
    ours, theirs = closed_form_values(first), closed_form_values(second)
    if ours is None or theirs is None:
        return None
    if len(ours) != len(theirs) or any(abs(a - b) > Decimal("1e-5") for a, b in zip(ours, theirs, strict=True)):
        return False
    lists = "," in first or "," in second
    return True if not lists and abs(ours[0] - theirs[0]) <= Decimal("1e-45") * abs(ours[0]) else None
