"""Arithmetic and functions of formulas (tasks.math_answers.formulas): exact where it can be, bounded in time always."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath

CONTEXT = mpmath.MPContext()
# Set by who evaluates: whether roots and logarithms of negative numbers have no value; how many terms were added up
CONTEXT.real_only, CONTEXT.terms = False, 0
_MOST_BITS = 60_000  # of an exact power
_LARGEST = 3000  # binary digits before the point of what a function or an exponent may be
_LOST = 30  # binary digits below the last one that is kept; rounding leaves larger ones
_GAMMA_LARGEST = 30  # the same, of a factorial's argument


class Undefined(ArithmeticError):
    """A formula has no value at a point, or none that can be computed in bounded time."""


class LostTerm(Undefined):
    """A term of a sum is so much smaller than the others that the digits do not show it."""


def number(value: Any) -> Any:
    """A value of CONTEXT."""
    return CONTEXT.mpf(value.numerator) / value.denominator if isinstance(value, (Fraction, int)) else value


def _is_exact(*values: Any) -> bool:
    return all(isinstance(value, (Fraction, int)) for value in values)


def _bounded(value: Any, largest: int = _LARGEST) -> Any:
    value = number(value)
    if not CONTEXT.isfinite(value) or (value and CONTEXT.mag(value) > largest):
        raise Undefined
    return value


def _in_domain(value: Any) -> Any:
    if CONTEXT.real_only and isinstance(value, CONTEXT.mpc):
        if value.imag:
            raise Undefined
        return value.real
    return value


def add(*values: Any) -> Any:
    """The sum."""
    total = Fraction(0)
    for value in values:
        if _is_exact(total, value):
            total += value
            continue
        before, value = number(total), number(value)
        if before and value and abs(CONTEXT.mag(before) - CONTEXT.mag(value)) > CONTEXT.prec + _LOST:
            raise LostTerm
        total = before + value
    return total


def multiply(*values: Any) -> Any:
    """The product."""
    total: Any = Fraction(1)
    for value in values:
        total = total * value if _is_exact(total, value) else number(total) * number(value)
    return total


def divide(above: Any, below: Any) -> Any:
    """The quotient."""
    if not below:
        raise Undefined
    return Fraction(above) / below if _is_exact(above, below) else number(above) / number(below)


def power(base: Any, exponent: Any) -> Any:
    """`base` to the `exponent`."""
    if _is_exact(base, exponent) and Fraction(exponent).denominator == 1:
        base, exponent = Fraction(base), int(exponent)
        if not base and exponent < 0:
            raise Undefined
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits * abs(exponent) <= _MOST_BITS:
            return base**exponent
    if _is_exact(base, exponent) and exponent == Fraction(1, 2):
        return root(base, Fraction(2))
    base, exponent = _bounded(base, 10**6), _bounded(exponent)
    if not base and CONTEXT.re(exponent) <= 0:
        raise Undefined
    return _in_domain(CONTEXT.power(base, exponent))


def root(inside: Any, degree: Any) -> Any:
    """The root; the real one of odd degree also of negative numbers."""
    if not degree:
        raise Undefined
    if _is_exact(inside) and degree == 2 and inside >= 0:
        above, below = math.isqrt(inside.numerator), math.isqrt(inside.denominator)
        if above * above == inside.numerator and below * below == inside.denominator:
            return Fraction(above, below)
    value = _bounded(inside, 10**6)
    if _is_exact(degree) and degree % 2 == 1 and not isinstance(value, CONTEXT.mpc) and value < 0:
        return -CONTEXT.power(-value, 1 / number(degree))
    return power(value, divide(1, degree)) if degree != 2 else _in_domain(CONTEXT.sqrt(value))


def factorial(value: Any, marks: int = 1) -> Any:
    """`n!`, or `n!!` of whole numbers."""
    if marks == 2 and not (_is_exact(value) and Fraction(value).denominator == 1):
        raise Undefined
    if _is_exact(value) and Fraction(value).denominator == 1 and 0 <= value <= 300:
        return Fraction(math.prod(range(int(value), 0, -marks)))
    return (CONTEXT.fac2 if marks == 2 else CONTEXT.factorial)(_bounded(value, _GAMMA_LARGEST))


def _binomial(upper: Any, lower: Any) -> Any:
    if _is_exact(upper, lower) and Fraction(upper).denominator == Fraction(lower).denominator == 1:
        n, k = int(upper), int(lower)
        if 0 <= n <= 2000:
            return Fraction(math.comb(n, k) if k >= 0 else 0)
    return CONTEXT.binomial(_bounded(upper, _GAMMA_LARGEST), _bounded(lower, _GAMMA_LARGEST))


def _logarithm(value: Any, base: Any = 10) -> Any:
    """To base 10, as the LaTeX parser of math-verify reads it."""
    return divide(FUNCTIONS["ln"](value), FUNCTIONS["ln"](base))


def _whole(function: Callable[[Any], Any], of_fractions: Callable[[Fraction], int]) -> Callable[[Any], Any]:
    def value(argument: Any) -> Any:
        if isinstance(argument, CONTEXT.mpc):
            raise Undefined
        return Fraction(of_fractions(argument) if _is_exact(argument) else int(function(_bounded(argument, 200))))

    return value


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def value(*arguments: Any) -> Any:
        if any(isinstance(argument, CONTEXT.mpc) for argument in arguments):
            raise Undefined
        return choose(arguments, key=number)

    return value


def _of_whole_numbers(function: Callable[..., int]) -> Callable[..., Any]:
    def value(*arguments: Any) -> Any:
        if not _is_exact(*arguments) or any(Fraction(argument).denominator != 1 for argument in arguments):
            raise Undefined
        return Fraction(function(*map(int, arguments)))

    return value


def unknown_function(key: int, *arguments: Any) -> Any:
    """The value of a function of which only the name is known (`key`): the same for the same arguments."""
    total = CONTEXT.mpf(key % 997) / 499
    for index, argument in enumerate(arguments):
        total += (CONTEXT.mpf(key % (101 + index)) / 53 + index + 1) * _bounded(argument)
    return CONTEXT.sin(total) + 2


def _of_one(name: str) -> Callable[[Any], Any]:
    function = getattr(CONTEXT, name)

    def value(argument: Any) -> Any:
        return _in_domain(function(_bounded(argument)))

    return value


def _of_complex(name: str) -> Callable[[Any], Any]:
    """Of a value with `i`; of a symbol, which has real values at points and may stand for any, an unknown function."""

    def value(argument: Any) -> Any:
        if isinstance(argument, CONTEXT.mpc) and argument.imag:
            return getattr(CONTEXT, name)(argument)
        return unknown_function(zlib.crc32(name.encode()), argument)

    return value


_WITH_INVERSE = ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth")
FUNCTIONS: dict[str, Callable[..., Any]] = {name: _of_one(name) for name in (*_WITH_INVERSE, "exp", "ln", "sign")} | {
    prefix + name: _of_one(f"a{name}") for prefix in ("arc", "a", "ar") for name in _WITH_INVERSE
}
FUNCTIONS |= {
    "cosec": FUNCTIONS["csc"], "arccosec": FUNCTIONS["acsc"], "tg": FUNCTIONS["tan"], "ctg": FUNCTIONS["cot"],
    "arctg": FUNCTIONS["atan"], "log": _logarithm, "lg": _logarithm, "abs": abs, "Abs": abs, "sgn": FUNCTIONS["sign"],
    "floor": _whole(CONTEXT.floor, math.floor), "ceil": _whole(CONTEXT.ceil, math.ceil),
    "ceiling": _whole(CONTEXT.ceil, math.ceil),
    "max": _extreme(max), "min": _extreme(min), "Max": _extreme(max), "Min": _extreme(min),
    "gcd": _of_whole_numbers(math.gcd), "lcm": _of_whole_numbers(math.lcm),
    "binomial": _binomial, "comb": _binomial, "binom": _binomial, "Rational": divide, "Fraction": divide,
    "cis": lambda angle: CONTEXT.expj(_bounded(angle)), "root": root, "Gamma": lambda value: factorial(add(value, -1)),
    "factorial": factorial, "cbrt": lambda value: root(value, Fraction(3)),
    "Re": _of_complex("re"), "Im": _of_complex("im"), "arg": _of_complex("arg"), "conj": _of_complex("conj"),
}  # fmt: skip
FUNCTIONS |= {
    "re": FUNCTIONS["Re"], "im": FUNCTIONS["Im"], "conjugate": FUNCTIONS["conj"],
}  # fmt: skip
