r"""A formula in LaTeX or plain notation, as a function of its symbols: read whole or not at all, never run as code.

Numbers stay exact (fractions) as long as only +, -, *, / and whole powers occur; everything else has as many digits as
`CONTEXT` says. A letter is a symbol, and `R` is not `r`; `E_{1}`, `\hat{x}`, `y'` and `k_B` are symbols of their own.
`e`, `\pi` and `i` are the constants. Letters side by side are multiplied; `f(x)` is an unknown function of x where `f`
never stands alone. The time that reading and evaluating take is bounded by the text's length.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

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

LONGEST = 1500  # characters
ROUNDED_DIGITS = 6  # after the point: from here on a number may be rounded, `1.6` is eight fifths
_DEEPEST = 40  # brackets inside each other
_MOST_TERMS = 20_000  # of all sums and products with bounds, in one comparison
_UNKNOWN_FUNCTIONS = {*"fghFG", "\\phi", "\\varphi", "\\psi", "\\Phi", "\\Psi", "\\zeta", "\\Gamma"}
_DIFFERENTIAL = re.compile(
    r"(?:d|\\partial|\\mathrm\s*\{\s*d\s*\})\s*(?:\^\s*\{?\s*\d\s*\}?)?\s*(?![_^'\d(])(?:\\?[a-zA-Z]+(?:_(?:\w|\{\s*\w+\s*\}))?'*)?(?:\s*\([a-z]\))?(?:\s*\^\s*\{?\d\}?)?\s*\}?$"
)
_OPENED = {
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
_KET = re.compile(r"\|\s*([^|<>{}\\]{1,20}|\\[a-z]+)\s*\\rangle(?![a-zA-Z])")
_IN_ANGLES = re.compile(r"\\langle(?![a-zA-Z])([^<>]{1,60}?)(?:\\rangle(?![a-zA-Z])|\|(?!.*\\rangle))", re.DOTALL)
_VECTOR = r"\\(?:vec|mathbf|boldsymbol|bm|overrightarrow)(?![a-zA-Z])"
_CROSS = re.compile(rf"\\times.*{_VECTOR}|{_VECTOR}(?!.*\\times)", re.DOTALL)
_MULTIPLIED = ("*", "/", "\\cdot", "\\times", "\\div", "\\ast", "×", "·")

Point = Mapping[str, Any]
Function = Callable[[Point], Any]


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


class _Reader(Tokens):
    def __init__(self, text: str, functions: frozenset[str]) -> None:
        super().__init__(text, functions)
        self.bars = 0
        self.symbols: set[str] = set()
        self.bound: list[str] = []
        self.rounded = self.imaginary = self.stepped = False

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
            return self.bars == 0 or (token == "|" and bool(_KET.match(self.text, self.tokens[self.at][2])))
        if argument and token[:1] == "\\" and token[1:] in FUNCTIONS:
            return False
        return bool(token) and (
            token[0].isalnum()
            or token in _OPENED
            or token == "\\langle"
            or (token[0] == "\\" and token[1:2].isalpha() and token not in (*_MULTIPLIED, *_OPENED.values()))
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
            value = self._after(value, functools.partial(factorial, marks=marks))
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
    def _after(value: Function, change: Callable[[Any], Any]) -> Function:
        return lambda point: change(value(point))

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

    def bracketed(self, opening: str) -> Function:
        self.take(opening)
        bars, self.bars = self.bars, 0
        value = self.sum()
        self.bars = bars
        self.take(_OPENED[opening])
        return value

    # What a factor begins with

    def atom(self) -> Function:
        token = self.next
        if token[:1].isdecimal() or (token[:1] == "." and token[1:]):
            return self.number()
        if token in ("(", "[", "{"):
            return self.bracketed(token)
        if token in ("|", "\\langle") and (special := self._of_states()):
            return special
        if token in ("|", "\\lvert", "\\|", "\\lVert"):
            return self.absolute(token)
        if token == "\\{" and self.at:  # not first: that is a set
            inside = self.bracketed(token)
            return lambda point: add(inside(point), multiply(-1, FUNCTIONS["floor"](inside(point))))
        if token in ("\\lfloor", "\\lceil"):
            self.stepped = True
            name = "floor" if token == "\\lfloor" else "ceil"
            return self._after(self.bracketed(token), FUNCTIONS[name])
        if token[:1] == "\\" and token[1:2].isalpha():
            return self.command()
        if token[:1].isalpha():
            return self.letters()
        raise Unreadable

    def number(self) -> Function:
        token = self.take()
        self.rounded |= len(token.partition(".")[2]) >= ROUNDED_DIGITS
        value = Fraction(token)
        return lambda point: value

    def absolute(self, opening: str) -> Function:
        self.take()
        bars, self.bars = self.bars, self.bars + 1 if opening in ("|", "\\|") else 0
        value = self.sum()
        self.bars = bars
        self.take(_OPENED.get(opening, opening))
        return self._after(value, abs)

    def _of_states(self) -> Function | None:
        r"""`|0\rangle`, `\langle E\rangle` and `\langle 0|` as symbols."""
        start = self.tokens[self.at][2]
        ket, angles = _KET.match(self.text, start), _IN_ANGLES.match(self.text, start)
        if (match := ket or angles) is None:
            return None
        while self.next and self.tokens[self.at][2] < match.end():
            self.take()
        kind = "ket" if ket else "angles" if match[0].endswith("rangle") else "bra"
        inside = re.sub(r"[\s{}]", "", match[1])
        return self.symbol(f"{kind}:{inside}", "")

    def command(self) -> Function:
        name = self.next[1:]
        if name in ("frac", "dfrac", "tfrac"):
            return self.fraction()
        if name == "sqrt":
            return self.square_root()
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
        return self._after(self.bracketed("{"), FUNCTIONS["conj"])

    def letters(self) -> Function:
        run = self.next
        if self.tokens[self.at + 1][0] == "(" and run in FUNCTIONS:
            self.take()
            return self.function(run)
        if len(run) > 4:
            raise Unreadable  # a word
        self.take_first(run[0])
        return self.name()

    def fraction(self) -> Function:
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

    def square_root(self) -> Function:
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
            return [self._combine(value, lambda point: Fraction(1), "*", negative)]
        self.take("(")
        bars, self.bars = self.bars, 0
        values = [self.sum()]
        while self.next == ",":
            self.take()
            values.append(self.sum())
        self.bars = bars
        self.take(")")
        return values

    # Names

    def name(self) -> Function:
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
                return self._after(self.arguments()[0], lambda one: factorial(add(one, -1)))
            arguments, key = self.arguments(), zlib.crc32(full.encode())
            return lambda point: unknown_function(key, *(one(point) for one in arguments))
        if full not in self.bound:
            self.symbols.add(full)
        return lambda point: point[full]
