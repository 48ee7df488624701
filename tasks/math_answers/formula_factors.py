r"""What a factor of a formula begins with: a number, a bracket, a command such as `\frac`, or the name of a symbol."""

from __future__ import annotations

import functools
import re
import zlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from tasks.math_answers.formula_functions import (
    CONTEXT,
    FUNCTIONS,
    Undefined,
    add,
    divide,
    factorial,
    multiply,
    power,
    root,
    unknown_function,
)
from tasks.math_answers.formula_tokens import ACCENTS, GREEK, STATES, UPRIGHT, Tokens, Unreadable

_ROUNDED_DIGITS = 6  # after the point: from here on a number may be rounded, `1.6` is eight fifths
_MOST_TERMS = 20_000  # of all sums and products with bounds, in one comparison
_DIFFERENTIAL = re.compile(
    r"(?:d|\\partial|\\mathrm\s*\{\s*d\s*\})\s*(?:\^\s*\{?\s*\d\s*\}?)?\s*(?![_^'\d(])(?:\\?[a-zA-Z]+(?:_(?:\w|\{\s*\w+\s*\}))?'*)?(?:\s*\([a-z]\))?(?:\s*\^\s*\{?\d\}?)?\s*\}?$"
)
OPENED = {
    "(": ")",
    "[": "]",
    "\\lfloor": "\\rfloor",
    "\\lceil": "\\rceil",
    "\\lvert": "\\rvert",
    "\\|": "\\|",
    "\\lVert": "\\rVert",
    "{": "}",
    "\\{": "\\}",
}
KET = re.compile(r"\|\s*([^|<>{}\\]{1,20}|\\[a-z]+)\s*\\rangle(?![a-zA-Z])")
_IN_ANGLES = re.compile(r"\\langle(?![a-zA-Z])([^<>]{1,60}?)(?:\\rangle(?![a-zA-Z])|\|(?!.*\\rangle))", re.DOTALL)

Point = Mapping[str, Any]
Function = Callable[[Point], Any]


def after(value: Function, change: Callable[[Any], Any]) -> Function:
    """A change of a formula's value."""
    return lambda point: change(value(point))


class Factors(Tokens):
    """Reads factors from the left.

    Attributes:
        bars: how many `|` are open.
        symbols: seen so far.
        bound: variables of the sums that are being read.
        rounded, imaginary, stepped: whether rounded numbers, `i`, and a floor were seen.
    """

    def __init__(self, text: str, functions: frozenset[str]) -> None:
        """See Tokens."""
        super().__init__(text, functions)
        self.bars = 0
        self.symbols: set[str] = set()
        self.bound: list[str] = []
        self.rounded = self.imaginary = self.stepped = False

    @abstractmethod
    def sum(self) -> Function:
        """Terms up to what can be none."""

    @abstractmethod
    def product(self, argument: bool = False) -> Function:
        """Factors up to what can be none; an argument without brackets ends before the next function."""

    @abstractmethod
    def argument(self) -> Function:
        """A group in braces, or one token: a digit, a letter, a command with its arguments."""

    def bracketed(self, opening: str) -> Function:
        """A bracket's content."""
        self.take(opening)
        bars, self.bars = self.bars, 0
        value = self.sum()
        self.bars = bars
        self.take(OPENED[opening])
        return value

    def atom(self) -> Function:
        """A factor without what stands behind it, such as a power."""
        token = self.next
        if token[:1].isdecimal() or (token[:1] == "." and token[1:]):
            return self.number()
        if token in ("(", "[", "{"):
            return self.bracketed(token)
        if token in ("|", "\\langle") and (special := self._of_states()):
            return special
        if token in ("|", "\\lvert", "\\|", "\\lVert"):
            return self._absolute(token)
        if token == "\\{" and self.at:  # not first: that is a set
            inside = self.bracketed(token)
            return lambda point: add(inside(point), multiply(-1, FUNCTIONS["floor"](inside(point))))
        if token in ("\\lfloor", "\\lceil"):
            self.stepped = True
            name = "floor" if token == "\\lfloor" else "ceil"
            return after(self.bracketed(token), FUNCTIONS[name])
        if token[:1] == "\\" and token[1:2].isalpha():
            return self._command()
        if token[:1].isalpha():
            return self._letters()
        raise Unreadable

    def number(self) -> Function:
        """A number as a fraction."""
        token = self.take()
        self.rounded |= len(token.partition(".")[2]) >= _ROUNDED_DIGITS
        value = Fraction(token)
        return lambda point: value

    def _absolute(self, opening: str) -> Function:
        self.take()
        bars, self.bars = self.bars, self.bars + 1 if opening in ("|", "\\|") else 0
        value = self.sum()
        self.bars = bars
        self.take(OPENED.get(opening, opening))
        return after(value, abs)

    def _of_states(self) -> Function | None:
        r"""`|0\rangle`, `\langle E\rangle` and `\langle 0|` as symbols."""
        start = self.tokens[self.at][2]
        ket, angles = KET.match(self.text, start), _IN_ANGLES.match(self.text, start)
        if (match := ket or angles) is None:
            return None
        while self.next and self.tokens[self.at][2] < match.end():
            self.take()
        kind = "ket" if ket else "angles" if match[0].endswith("rangle") else "bra"
        inside = re.sub(r"[\s{}]", "", match[1])
        return self.symbol(f"{kind}:{inside}", "")

    def _command(self) -> Function:
        name = self.next[1:]
        if name in ("frac", "dfrac", "tfrac"):
            return self._fraction()
        if name == "sqrt":
            return self._square_root()
        if name == "binom":
            self.take()
            upper, lower = self.argument(), self.argument()
            return lambda point: FUNCTIONS["binomial"](upper(point), lower(point))
        if name in ("sum", "prod"):
            return self.sum_with_bounds(add if name == "sum" else multiply)
        if name in FUNCTIONS and name != "Gamma":
            self.take()
            return self.function(name)
        if name in ("partial", "nabla", "angle", "Box"):
            return self.operator()
        if name in ("overline", "bar") and (inside := self._conjugated()):
            return inside
        if name in ("pi", *GREEK) or name in ACCENTS | UPRIGHT | STATES:
            return self.name()
        raise Unreadable

    def operator(self) -> Function:
        r"""`\partial_x u`, `\nabla^2 u` and `\angle A` as symbols of their own."""
        name = self.take()
        while self.next in ("_", "^"):
            name += self.take() + self.raw_group()
        if self.next[1:] in ACCENTS:
            name += self.take() + self.raw_group()
        elif self.next[1:] in GREEK or (name == "\\angle" and self.next.isalpha()):
            name += self.take()
        elif self.next[:1].isalpha():
            self.take_first(self.next[0])
            name += self.take()
        else:
            raise Unreadable
        return self.symbol(name, self.indices())

    def _conjugated(self) -> Function | None:
        r"""`\overline{a+bi}`; None for a name, as in `\overline{AB}`."""
        if not re.match(r"\\(?:overline|bar)\s*\{[^{}]*[-+]", self.text[self.tokens[self.at][2] :]):
            return None
        self.take()
        return after(self.bracketed("{"), FUNCTIONS["conj"])

    def _letters(self) -> Function:
        run = self.next
        if self.tokens[self.at + 1][0] == "(" and run in FUNCTIONS:
            self.take()
            return self.function(run)
        if len(run) > 4:
            raise Unreadable  # a word
        self.take_first(run[0])
        return self.name()

    def _fraction(self) -> Function:
        self.take()
        before, start = set(self.symbols), self.tokens[self.at][2]
        above = self.argument()
        middle = self.tokens[self.at][2]
        below = self.argument()
        end = self.tokens[self.at][2]
        parts = [self.text[a:b].strip().removeprefix("{").lstrip() for a, b in ((start, middle), (middle, end))]
        if all(map(_DIFFERENTIAL.match, parts)):
            return self.derivative(before, *parts)
        return lambda point: divide(above(point), below(point))

    def derivative(self, before: set[str], above: str, below: str) -> Function:
        r"""`\frac{dx}{dt}` is a symbol of its own, not a quotient of products; the operator alone is unreadable."""
        above, below = (re.sub(r"\\mathrm\s*\{\s*d\s*\}", "d", part) for part in (above, below))
        above, below = (re.sub(r"[{}\s]|\([a-z]\)$", "", part) for part in (above, below))
        if not _DIFFERENTIAL.fullmatch(above) or not re.search("[a-zA-Z]", re.sub(r"^(?:d|\\partial)", "", above)):
            raise Unreadable
        self.symbols = before
        return self.symbol(f"{above}/{below}", "")

    def _square_root(self) -> Function:
        self.take()
        degree: Function = lambda point: Fraction(2)  # noqa: E731
        if self.next == "[":
            degree = self.bracketed("[")
        inside = self.argument()
        return lambda point: root(inside(point), degree(point))

    def sum_with_bounds(self, combine: Callable[..., Any]) -> Function:
        r"""`\sum_{k=1}^{n}` of the product behind it, term by term."""
        self.take()
        self.take("_")
        self.take("{")
        variable = self.take()
        self.take("=")
        low = self.sum()
        self.take("}")
        self.take("^")
        high = self.argument()
        if not re.fullmatch("[a-zA-Z]", variable):
            raise Unreadable
        self.bound.append(variable)
        body = self.product()
        self.bound.pop()

        def value(point: Point) -> Any:
            first, last = low(point), high(point)
            if not all(isinstance(end, Fraction) and end.denominator == 1 for end in (first, last)):
                raise Undefined
            CONTEXT.terms += last - first + 1
            if CONTEXT.terms > _MOST_TERMS:
                raise Undefined
            unit = Fraction(0) if combine is add else Fraction(1)
            return combine(unit, *(body({**point, variable: Fraction(k)}) for k in range(int(first), int(last) + 1)))

        return value

    def function(self, name: str) -> Function:
        """A function's power, base and argument: `\\sin^2 x`, `\\log_2(x)`, `max(a, b)`."""
        base = exponent = None
        inverse = False
        if self.next == "_" and name in ("log", "lg"):
            self.take()
            base = self.argument()
        if self.next == "^":
            self.take()
            inverse = bool(re.match(r"\{\s*-\s*1\s*\}", self.text[self.tokens[self.at - 1][2] + 1 :].lstrip()))
            exponent = self.argument()
        arguments = self.arguments()
        if base is not None:
            arguments.append(base)
        if inverse and f"arc{name}" in FUNCTIONS:
            name, exponent = f"arc{name}", None
        function = FUNCTIONS[name]
        self.imaginary |= name == "cis"

        def value(point: Point) -> Any:
            result = function(*(one(point) for one in arguments))
            return result if exponent is None else power(result, exponent(point))

        return value

    def arguments(self) -> list[Function]:
        """In brackets, separated by commas; without brackets the product that follows, up to the next function."""
        if self.next == "{":
            return [self.bracketed("{")]
        if self.next != "(":
            negative = self.next == "-" and bool(self.take())
            value = self.product(argument=True)
            return [after(value, functools.partial(multiply, -1)) if negative else value]
        self.take("(")
        bars, self.bars = self.bars, 0
        values = [self.sum()]
        while self.next == ",":
            self.take()
            values.append(self.sum())
        self.bars = bars
        self.take(")")
        return values

    def name(self) -> Function:
        """A symbol with its accents, indices and primes, or a function in upright letters."""
        token = self.take()
        if token[1:] in ACCENTS | STATES:
            name = f"{token[1:].replace('overline', 'bar').replace('wide', '')}:{self.raw_group()}"
        elif token[1:] in UPRIGHT:
            name = self.raw_group()
            if name.lstrip("\\") in FUNCTIONS:
                return self.function(name.lstrip("\\"))
        else:
            name = token
        return self.symbol(name, self.name_marks(name))

    def symbol(self, name: str, marks: str) -> Function:
        """A symbol, a constant, or an unknown function of what follows in brackets."""
        if not name or not re.search(r"[a-zA-Z]", name):
            raise Unreadable
        full = name + marks
        if not marks and name == "\\pi":
            return lambda point: +CONTEXT.pi
        if not marks and name == "e" and name not in self.bound:
            return lambda point: +CONTEXT.e
        if not marks and name == "i" and name not in self.bound:
            self.imaginary = True
            return lambda point: CONTEXT.mpc(0, 1)
        if name in self.functions and self.next == "(":
            if full == "\\Gamma":
                return after(self.arguments()[0], lambda one: factorial(add(one, -1)))
            arguments, key = self.arguments(), zlib.crc32(full.encode())
            return lambda point: unknown_function(key, *(one(point) for one in arguments))
        if full not in self.bound:
            self.symbols.add(full)
        return lambda point: point[full]
