"""Find equations between numbers that are false. The text is parsed, never evaluated.

`3 \\times 4 = 12` and `10/4 = 2.5 = 5/2` are checked. `x + 3 = 7` is not, nor is anything next to a letter, a power, a
percent sign or an unknown command: whatever is ambiguous is skipped.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

TOKEN = re.compile(
    r"""(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?)
      | (?P<fraction>\\[dt]?frac\s*\{\s*(?P<above>\d+)\s*\}\s*\{\s*(?P<below>\d+)\s*\})
      | (?P<operator>\\times|\\cdot|\\div|[-+*/×·÷−–]) | (?P<equals>=) | (?P<open>\() | (?P<close>\))
      | (?P<skip>[ \t]+|\\[,;!]|\$|\\(?:left|right)(?![a-zA-Z]))
      | (?P<soft>\n|[.,](?!\d)|[;:?'"<>]|\\[()\[\]]|\\\\|\\(?:quad|text|boxed|implies|Rightarrow|approx)(?![a-zA-Z])|&)
      | (?P<word>[^\W\d_]{2,}) | (?P<hard>.)""",
    re.VERBOSE,
)
LINE = re.compile(r"^[^\n=]*=[^\n]*", re.MULTILINE)
OPERATORS = {"\\times": "*", "×": "*", "\\cdot": "*", "·": "*", "\\div": "/", "÷": "/", "−": "-", "–": "-"}
ARITHMETIC: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv
}  # fmt: skip
FUNCTIONS = {"sin", "cos", "tan", "cot", "sec", "log", "ln", "sqrt", "exp", "mod", "gcd", "lcm", "frac", "div"}
ZERO = Fraction(0)
MAX_TOKENS = 200  # of one chain of equations; longer chains are skipped
ROUNDED_PLACES = 3  # a number with this many decimals or more counts as rounded
MAX_DIGITS = 60  # of an intermediate result, so that long products stay fast


@dataclass(frozen=True)
class FalseEquation:
    """An equation that is false, as written, with its place in the text."""

    text: str
    start: int
    end: int


class _Token(NamedTuple):
    kind: str  # number, operator, open, close, equals
    text: str
    value: Fraction
    places: int  # decimals; -1 for an exact number
    start: int
    end: int


def _chains(text: str) -> Iterator[tuple[list[_Token], bool, bool]]:
    """Sequences of arithmetic tokens with an equals sign, each with whether its left and its right end are certain."""
    for line in LINE.finditer(text):  # the end of a line ends a sequence with certainty
        yield from _chains_of_line(text, line.start(), line.end())


def _chains_of_line(text: str, start_of_line: int, end_of_line: int) -> Iterator[tuple[list[_Token], bool, bool]]:
    run: list[_Token] = []
    left, spaced = True, True
    for match in TOKEN.finditer(text, start_of_line, end_of_line):
        kind = match.lastgroup or ""
        if kind in ("above", "below"):
            kind = "fraction"
        word, start, end = match[0], match.start(), match.end()
        if kind == "skip":
            spaced = True
            continue
        if kind in ("number", "fraction", "operator", "equals", "open", "close"):
            value, places = ZERO, -1
            if kind == "number":
                digits = word.replace(",", "")
                if len(digits) > MAX_DIGITS:
                    kind = "unreadable"
                else:
                    places = len(digits.partition(".")[2])
                    value = Fraction(digits) if places else Fraction(int(digits))
            elif kind == "fraction":
                if int(match["below"][:MAX_DIGITS]) == 0 or len(word) > MAX_DIGITS:
                    kind = "unreadable"
                else:
                    value, kind = Fraction(int(match["above"]), int(match["below"])), "number"
            elif kind == "operator":
                word = OPERATORS.get(word, word)
            run.append(_Token(kind, word, value, places, start, end))
        else:
            clear = kind == "soft" or (kind == "word" and word.lower() not in FUNCTIONS)
            if run:
                yield run, left, clear and (kind == "soft" or spaced)
            run, left = [], clear
        if kind == "word" and text[end : end + 1].isdigit():
            left = False  # as in "x12", a name
        spaced = False
    if run:
        yield run, left, True


def _value(tokens: list[_Token]) -> tuple[Fraction, int, int]:
    """Value, decimals of a lone number (else -1), and number of operations.

    Python's own parser reads the structure, with each number replaced by the position of its token. Raises SyntaxError
    or ArithmeticError for anything but a sum of products of numbers.
    """
    if len(tokens) == 1 and tokens[0].kind == "number":
        return tokens[0].value, tokens[0].places, 0
    terms = []
    for position, token in enumerate(tokens):
        if token.kind == "open" and position and tokens[position - 1].kind in ("number", "close"):
            terms.append("*")  # 2(3) is a product
        terms.append(str(position) if token.kind == "number" else token.text)
    operations = 0

    def value(node: ast.expr) -> Fraction:
        nonlocal operations
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return tokens[node.value].value
        if isinstance(node, ast.UnaryOp):
            return -value(node.operand) if isinstance(node.op, ast.USub) else value(node.operand)
        if not isinstance(node, ast.BinOp):
            raise SyntaxError
        operations += 1
        result_value = ARITHMETIC[type(node.op)](value(node.left), value(node.right))
        if max(abs(result_value.numerator), result_value.denominator) > 10**MAX_DIGITS:
            raise OverflowError
        return result_value

    result = value(ast.parse(" ".join(terms), mode="eval").body)
    return result, -1, operations


def _holds(first: tuple[Fraction, int, int], second: tuple[Fraction, int, int], rounded: bool) -> bool:
    """Whether two sides are equal, up to rounding of a lone decimal or of long decimals in an intermediate result."""
    off = abs(first[0] - second[0])
    if rounded and off <= abs(second[0]) / 1000:
        return True
    places = [side[1] for side in (first, second) if side[1] > 0]
    return off == 0 or (bool(places) and off < Fraction(1, 10 ** min(places)))


def false_equations(text: str) -> list[FalseEquation]:
    """The false equations between numbers in a text, in their order."""
    equations = []
    for run, left, right in _chains(text):
        if len(run) > MAX_TOKENS or not any(token.kind == "equals" for token in run):
            continue
        sides: list[list[_Token]] = [[]]
        for token in run:
            if token.kind == "equals":
                sides.append([])
            else:
                sides[-1].append(token)
        values: list[tuple[Fraction, int, int] | None] = []
        for number, side in enumerate(sides):
            readable = bool(side) and (number > 0 or left) and (number < len(sides) - 1 or right)
            # A leading sign may continue a term that was not parsed.
            readable = readable and not (number == 0 and side[0].kind == "operator")
            try:
                values.append(_value(side) if readable else None)
            except (SyntaxError, ArithmeticError, RecursionError, MemoryError):
                values.append(None)
        if "remainder" in text[run[-1].end : run[-1].end + 40].lower():
            continue  # a division with remainder: the equation shows only the quotient
        for number, (first, second) in enumerate(itertools.pairwise(values)):
            rounded = any(token.places >= ROUNDED_PLACES for token in sides[number] + sides[number + 1])
            if first is None or second is None or not first[2] + second[2] or _holds(first, second, rounded):
                continue
            start, end = sides[number][0].start, sides[number + 1][-1].end
            equations.append(FalseEquation(text[start:end], start, end))
    return equations
