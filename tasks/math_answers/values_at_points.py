"""Formulas and relations compared by their values at points: exactly where numbers stay exact, else to many digits.

Every difference is relative to the values. One point at which formulas differ decides. Equal are those that agree
wherever both have a value: inside and outside of |x| < 1, at negative and at whole numbers. What has values at too few
points is left open, and is not equal.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath

from tasks.math_answers.formula_functions import CONTEXT, LostTerm, Undefined, add, divide, multiply, number
from tasks.math_answers.formulas import Formula

DIGITS, MORE_DIGITS, MOST_DIGITS, BEYOND_MOST = 40, (110, 180), 700, (770, 840)
ROUNDED = Fraction(1, 10**9)  # between decimal numbers, and values that come from them
ENOUGH = 3  # points
# Ranges in 97ths: inside and outside of |x| < 1, of one sign and of both
NO_VALUE = (ArithmeticError, ValueError, TypeError, NotImplementedError)  # Python's and mpmath's, where none exists
_RANGES = ((20, 92), (102, 250), (-90, 90), (5, 60), (-300, 300), (-290, -105), (-95, -10), (190, 900), (-500, 400))
_WHOLE_SYMBOLS = frozenset("nkmNM")  # stand for whole numbers in a floor
_WHOLE_RANGES = ((1, 9, 1), (2, 12, 1), (1, 6, 1), (3, 20, 1), (1, 9, 6), (2, 9, 10))  # the last with common factors


def points(symbols: Sequence[str]) -> Iterator[dict[str, Fraction]]:
    """Points at which formulas of these symbols are compared: fractions, then whole numbers, all well apart."""
    if not symbols:
        yield {}
        return
    ranges = [(low, high, Fraction(1, 97)) for low, high in _RANGES]
    ranges += [(low, high, Fraction(factor)) for low, high, factor in _WHOLE_RANGES]
    for seed, (low, high, unit) in enumerate(ranges):
        choices = [n for n in range(low, max(high, low + 2 * len(symbols))) if n and n % 97]
        chosen = random.Random(seed).sample(choices, len(symbols))
        yield {name: n * unit for name, n in zip(symbols, chosen, strict=True)}


def whole_points(symbols: Sequence[str]) -> Iterator[dict[str, Fraction]]:
    """Points of whole numbers alone, each of the first ones among them."""
    for first in (*range(1, 41), 101, 997, 12347):
        yield {name: Fraction(first + 3 * index) for index, name in enumerate(symbols)}
    for point in points(symbols):
        if all(value.denominator == 1 for value in point.values()):
            yield point


def compare(gold: Formula, answer: Formula) -> bool | None:
    """Whether two formulas are equal; None where points cannot tell."""
    symbols = sorted(gold.symbols | answer.symbols)
    CONTEXT.real_only, CONTEXT.terms = not (gold.imaginary or answer.imaginary), 0
    same = 0
    whole = (gold.stepped or answer.stepped) and _WHOLE_SYMBOLS.issuperset(symbols)
    for point in whole_points(symbols) if whole else points(symbols):
        try:
            if not _is_same_at(point, gold, answer):
                return False
        except NO_VALUE:
            continue
        same += 1
    return True if same >= (ENOUGH if symbols else 1) else None


def is_constant_of_integration(name: str, formula: Formula) -> bool:
    """Whether a formula of one variable is linear in this symbol and has a part without it, as `x^2+c` and `1+ce^x`."""
    if name not in formula.symbols or len(formula.symbols) != 2:
        return False
    CONTEXT.real_only, CONTEXT.terms = not formula.imaginary, 0
    linear = 0
    for point in itertools.islice(points(sorted(formula.symbols)), 3):
        try:
            low, middle, high = (number(_values({**point, name: Fraction(n)}, formula)[0]) for n in range(3))
        except NO_VALUE:
            continue
        linear += bool(low and abs(low + high - 2 * middle) <= abs(middle) * CONTEXT.mpf(10) ** (5 - DIGITS))
    return linear > 1


def number_value(formula: Formula) -> float | None:
    """The value of a formula without symbols; None for others, and without a real value."""
    CONTEXT.real_only, CONTEXT.terms = True, 0
    try:
        value = number(_values({}, formula)[0])
        return float(value)
    except (*NO_VALUE, KeyError):
        return None


def decimal_value(formula: Formula) -> Decimal | None:
    """The real value of a formula without symbols to DIGITS digits; None without one."""
    CONTEXT.real_only, CONTEXT.terms = True, 0
    try:
        return Decimal(mpmath.nstr(number(_values({}, formula)[0]), DIGITS))
    except (*NO_VALUE, KeyError):
        return None


def is_true_at(point: dict[str, Fraction], sides: Sequence[Formula], signs: Sequence[str]) -> bool:
    """Whether a chain of `<`, `<=` and `!=` holds at a point; not where a side has no value."""
    CONTEXT.real_only, CONTEXT.terms = True, 0
    try:
        values = _values(point, *sides)
        for (low, high), sign in zip(itertools.pairwise(values), signs, strict=True):
            if isinstance(low, Fraction) and isinstance(high, Fraction):
                difference, same = high - low, low == high
            else:
                difference, size = number(high) - number(low), max(abs(number(low)), abs(number(high)), 1)
                same = abs(difference) <= size * CONTEXT.mpf(10) ** (10 - DIGITS)
            if (sign != "<=") if same else (sign != "!=" and difference < 0):
                return False
    except NO_VALUE:
        return False
    return True


def _values(point: dict[str, Fraction], *formulas: Formula, digits: int = DIGITS) -> list[Any]:
    CONTEXT.dps = digits
    values = [one.value(point) for one in formulas]
    if not all(CONTEXT.isfinite(number(value)) for value in values):
        raise Undefined
    return values


def _is_same_at(point: dict[str, Fraction], gold: Formula, answer: Formula) -> bool:
    try:
        expected, value = _values(point, gold, answer)
    except LostTerm:  # as the second of `x+e^{-300}`
        expected, value = _values(point, gold, answer, digits=MOST_DIGITS)
        return _vanishes(point, gold, answer, abs(number(expected) - number(value)), BEYOND_MOST)
    if isinstance(expected, Fraction) and isinstance(value, Fraction) and not (gold.rounded or answer.rounded):
        return expected == value
    if not (gold.rounded or answer.rounded):
        return _vanishes(point, gold, answer, abs(number(expected) - number(value)))
    difference, size = abs(number(expected) - number(value)), max(abs(number(expected)), abs(number(value)))
    if difference <= size * number(ROUNDED):
        return True
    # One is exact, the other rounded to six decimals
    near = CONTEXT.nint(CONTEXT.re(number(expected)) * 10**6) == CONTEXT.nint(CONTEXT.re(number(value)) * 10**6)
    return bool(
        not point and gold.rounded != answer.rounded and near and difference <= 1e-6 and difference <= 1e-4 * size
    )


def _vanishes(
    point: dict[str, Fraction], gold: Formula, answer: Formula, difference: Any, more: Sequence[int] = MORE_DIGITS
) -> bool:
    """Whether a difference is of rounding: with more digits it is much smaller."""
    for digits in more:
        expected, value = _values(point, gold, answer, digits=digits)
        before, difference = difference, abs(number(expected) - number(value))
        if before:
            return bool(difference <= before * CONTEXT.mpf(10) ** -DIGITS)
    return not before


# Relations: a chain of formulas with signs between them


def compare_relations(gold: Sequence[Formula], answer: Sequence[Formula], sign: str) -> bool | None:
    """Whether `gold[0] sign gold[1]` says the same as `answer[0] sign answer[1]`; None where points cannot tell.

    Args:
        gold: both sides.
        answer: both sides.
        sign: `=`, `!=`, `<` or `<=`.
    """
    formulas = (*gold, *answer)
    symbols = sorted(frozenset().union(*(one.symbols for one in formulas)))
    CONTEXT.real_only, CONTEXT.terms = not any(one.imaginary for one in formulas), 0
    ratios = []
    for point in points(symbols):
        try:
            left, right, other_left, other_right = _values(point, *formulas)
            ratios.append(divide(add(left, multiply(-1, right)), add(other_left, multiply(-1, other_right))))
        except NO_VALUE:
            continue
    if len(ratios) >= ENOUGH and ratios[0] and all(_is_near(one, ratios[0]) for one in ratios):
        return sign in ("=", "!=") or bool(CONTEXT.re(number(ratios[0])) > 0)
    if sign not in ("=", "!="):
        return None
    near = 1e-9 if any(one.rounded for one in formulas) else 1e-15
    both = [_solves(gold, answer, symbols, near), _solves(answer, gold, symbols, near)]
    return False if False in both else True if both == [True, True] else None


def _is_near(one: Any, other: Any) -> bool:
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return one == other
    return bool(abs(number(one) - number(other)) <= abs(number(other)) * CONTEXT.mpf(10) ** (5 - DIGITS))


def _solves(gold: Sequence[Formula], answer: Sequence[Formula], symbols: Sequence[str], near: float) -> bool | None:
    """Whether what solves the first equation solves the second, as solutions near points say; None without any."""
    own = sorted(gold[0].symbols | gold[1].symbols)
    solved = 0
    for point, symbol in itertools.product(list(points(symbols))[: len(_RANGES)], own):
        try:
            solution = _solution(gold, point, symbol)
            there, near_by = (
                abs(_difference(answer, {**point, symbol: value})) for value in (solution, solution * 1.1 + 0.01)
            )
        except NO_VALUE:
            continue
        if there > near * near_by:
            return False
        solved += 1
    return True if solved >= ENOUGH else None


def _difference(equation: Sequence[Formula], point: Mapping[str, Any]) -> Any:
    left, right = (number(one.value(point)) for one in equation)
    return left - right


def _solution(equation: Sequence[Formula], point: dict[str, Fraction], symbol: str) -> Any:
    """A value of the symbol that solves the equation, by secants from the point; ValueError without one."""
    start = number(point[symbol])
    CONTEXT.dps = DIGITS
    difference = lambda value: _difference(equation, {**point, symbol: value})  # noqa: E731
    return CONTEXT.findroot(difference, (start, start * 1.05), solver="secant", maxsteps=40, tol=1e-60)
