r"""A formula in LaTeX or plain notation, as a function of its symbols: read whole or not at all, never run as code.

Numbers stay exact (fractions) as long as only +, -, *, / and whole powers occur; everything else has as many digits as
`CONTEXT` says. A letter is a symbol, and `R` is not `r`; `E_{1}`, `\hat{x}`, `y'` and `k_B` are symbols of their own.
`e`, `\pi` and `i` are the constants. Letters side by side are multiplied; `f(x)` is an unknown function of x where `f`
never stands alone. The time that reading and evaluating take is bounded by the text's length.
"""

from __future__ import annotations

import functools
import re
from fractions import Fraction
from typing import Any, NamedTuple

from tasks.math_answers.formula_factors import KET, OPENED, Factors, Function, Point, after
from tasks.math_answers.formula_functions import FUNCTIONS, add, divide, factorial, multiply, power
from tasks.math_answers.formula_tokens import Unreadable

LONGEST = 1500  # characters
_DEEPEST = 40  # brackets inside each other
_UNKNOWN_FUNCTIONS = {*"fghFG", "\\phi", "\\varphi", "\\psi", "\\Phi", "\\Psi", "\\zeta", "\\Gamma"}
_VECTOR = r"\\(?:vec|mathbf|boldsymbol|bm|overrightarrow)(?![a-zA-Z])"
_CROSS = re.compile(rf"\\times.*{_VECTOR}|{_VECTOR}(?!.*\\times)", re.DOTALL)
_MULTIPLIED = ("*", "/", "\\cdot", "\\times", "\\div", "\\ast", "×", "·")


class Formula(NamedTuple):
    """A formula: its value at a point, its symbols, and whether rounded numbers, `i`, and a floor occur in it."""

    value: Function
    symbols: frozenset[str]
    rounded: bool
    imaginary: bool
    stepped: bool = False


def read(text: str, functions: frozenset[str] = frozenset()) -> Formula | None:
    """The formula that a whole text in plain notation is; None for any other text.

    Args:
        text: without white space around it.
        functions: which letters are functions where a bracket follows them (`unknown_functions`).
    """
    if not text or len(text) > LONGEST or nesting(text) > _DEEPEST:
        return None
    try:
        return _Reader(text, functions).whole()
    except (Unreadable, RecursionError):
        return None


def nesting(text: str) -> int:
    """How many brackets stand inside each other."""
    depth = deepest = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest


def unknown_functions(*texts: str) -> frozenset[str]:
    r"""Letters such as `f` and `\psi` that stand nowhere in the texts without a bracket after them."""
    uses: dict[str, bool] = {}
    for match in re.finditer(
        r"(\\[a-zA-Z]+|(?<![a-zA-Z\\])[a-zA-Z](?![a-zA-Z]))(?:_\w|_\{\w+\}|')*\s*(\()?", "  ".join(texts)
    ):
        uses[match[1]] = uses.get(match[1], True) and match[2] is not None
    return frozenset(name for name, applied in uses.items() if applied and name in _UNKNOWN_FUNCTIONS)


def _orientation(point: Point, first: Function, second: Function) -> Any:
    """What changes its sign where the vectors of a cross product change places, whatever scalars stand before them."""
    vectors = {name: value if ":" in name else Fraction(1) for name, value in point.items()}
    return add(first(vectors), multiply(-1, second(vectors)))


class _Reader(Factors):
    def whole(self) -> Formula:
        value = self.sum()
        if self.next:
            raise Unreadable
        return Formula(value, frozenset(self.symbols), self.rounded, self.imaginary, self.stepped)

    # Sums, products and powers

    def sum(self) -> Function:
        terms = [self.signed()]
        while self.next in ("+", "-"):
            terms.append(self.signed())
        return terms[0] if len(terms) == 1 else lambda point: add(*(term(point) for term in terms))

    def signed(self) -> Function:
        negative = False
        while self.next in ("+", "-"):
            negative ^= self.take() == "-"
        term = self.product()
        return (lambda point: multiply(-1, term(point))) if negative else term

    def product(self, argument: bool = False) -> Function:
        start = self.tokens[self.at][2]
        value = self.factors(argument)
        while self.next in _MULTIPLIED:
            middle = self.tokens[self.at][2]
            operator = self.take()
            negative = self.next in ("+", "-") and self.take() == "-"
            simple = self.at + 1
            other = self.factors(argument, after_slash=operator == "/" and bool(re.fullmatch(r"\d+", self.next)))
            if _CROSS.search(self.text[start:middle]) and _CROSS.match(self.text[middle : self.tokens[self.at][2]]):
                operator = "cross"
            value = self._combine(value, other, operator, negative)
            if operator == "/" and self.at == simple and self._starts_factor(argument):
                value = self._combine(value, self.factors(argument), "*", False)  # `1/2 x`
        return value

    @staticmethod
    def _combine(first: Function, second: Function, operator: str, negative: bool) -> Function:
        sign = -1 if negative else 1
        if operator in ("/", "\\div"):
            return lambda point: divide(multiply(sign, first(point)), second(point))
        if operator == "cross":
            return lambda point: multiply(sign, first(point), second(point), _orientation(point, first, second))
        return lambda point: multiply(sign, first(point), second(point))

    def _starts_factor(self, argument: bool) -> bool:
        token = self.next
        if token in ("|", "\\|"):
            return self.bars == 0 or (token == "|" and bool(KET.match(self.text, self.tokens[self.at][2])))
        if argument and token[:1] == "\\" and token[1:] in FUNCTIONS:
            return False
        return bool(token) and (
            token[0].isalnum()
            or token in OPENED
            or token == "\\langle"
            or (token[0] == "\\" and token[1:2].isalpha() and token not in (*_MULTIPLIED, *OPENED.values()))
        )

    def factors(self, argument: bool = False, after_slash: bool = False) -> Function:
        """Factors side by side; two numbers are not, and `1/2 x` ends before the x."""
        number = self.next[:1].isdecimal()
        whole_number = self.next if re.fullmatch(r"\d+", self.next) else ""
        values = [self.power()]
        if after_slash and self.tokens[self.at][1]:
            return values[0]
        if whole_number and (mixed := self._mixed(whole_number, values[0])):
            values = [mixed]
        while self._starts_factor(argument):
            if self.next[0].isdecimal() and number:
                raise Unreadable
            number = self.next[0].isdecimal()
            values.append(self.power())
        return values[0] if len(values) == 1 else lambda point: multiply(*(value(point) for value in values))

    def _mixed(self, number: str, value: Function) -> Function | None:
        """A mixed number, where the next tokens are a proper fraction of whole numbers."""
        if self.tokens[self.at - 1][0] != number or self.next != "\\frac":
            return None
        match = re.match(
            r"\\frac\s*\{\s*(\d{1,9})\s*\}\s*\{\s*(\d{1,9})\s*\}(?!\s*[\^!])", self.text[self.tokens[self.at][2] :]
        )
        if match is None or int(match[1]) >= int(match[2]):
            return None
        fraction = self.power()
        return lambda point: add(value(point), fraction(point))

    def power(self) -> Function:
        value = self.atom()
        while self.next == "!":
            self.take()
            marks = 2 if self.next == "!" and self.take() else 1
            value = after(value, functools.partial(factorial, marks=marks))
        if self.next != "^":
            return value
        self.take()
        exponent = self.argument()
        if self.next == "^":
            self.take()
            exponent = self._powers(exponent, self.argument())
        value = self._powers(value, exponent)
        if self.next == "!":
            raise Unreadable
        return value

    @staticmethod
    def _powers(base: Function, exponent: Function) -> Function:
        return lambda point: power(base(point), exponent(point))

    def argument(self) -> Function:
        """A group in braces, or one token: a digit, a letter, a command with its arguments."""
        token = self.next
        if token == "{":
            return self.bracketed("{")
        if token in ("+", "-"):
            return self.signed_token()
        if token[:1].isdecimal() or token[:1].isalpha():
            self.take_first(token[0])
            return self.number() if token[0].isdecimal() else self.symbol(self.take(), "")
        if token[:1] == "\\" and token[1:2].isalpha():
            return self.atom()
        raise Unreadable

    def signed_token(self) -> Function:
        negative = self.take() == "-"
        value = self.argument()
        return (lambda point: multiply(-1, value(point))) if negative else value
