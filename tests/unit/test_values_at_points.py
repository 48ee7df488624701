"""Answers compared by their values at points: equal ones are never refuted, and different ones soon."""

import pytest
import sympy
from math_verify import parse

from tasks.math_answers import values_at_points

PENDULUM = r"m g l \sin(\theta) + k \theta + m l^2 a = 0"


def compare(gold: str, answer: str) -> bool | None:
    first, second = (parse(f"${one}$", parsing_timeout=None)[0] for one in (gold, answer))
    return values_at_points.compare(first, second)


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("y = 2x + 1", "y - 2x = 1"),
        ("y = 2x + 1", "2y = 4x + 2"),
        ("y = 2x + 1", "1 + 2x - y = 0"),
        ("y = 2x + 1", "x = \\frac{y - 1}{2}"),
        ("x^2 + y^2 = 25 + z", "z = x^2 + y^2 - 25"),
        ("y = 0.33333 x", "y = \\frac{x}{3}"),
        ("y = \\pi x", "y = 3.1416 x"),
        (PENDULUM, r"a = -\frac{g \sin(\theta)}{l} - \frac{k \theta}{m l^2}"),
    ],
)
def test_forms_of_one_equation_are_not_refuted(gold: str, answer: str) -> None:
    assert all(isinstance(parse(f"${one}$", parsing_timeout=None)[0], sympy.Eq) for one in (gold, answer))
    assert compare(gold, answer) is not False
    assert compare(answer, gold) is not False


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("y = 2x + 1", "y = 2x + 3"),
        ("y = 2x + 1", "y = x + 1"),
        ("x^2 + y^2 = 25 + z", "x^2 - y^2 = 25 + z"),
        (PENDULUM, r"m g l \sin(\theta) - k \theta + m l^2 a = 0"),
    ],
)
def test_other_equations_are_refuted(gold: str, answer: str) -> None:
    assert compare(gold, answer) is False
    assert compare(answer, gold) is False


def test_what_values_cannot_show_is_left_open() -> None:
    t, x, y = sympy.symbols("t x y")
    f = sympy.Function("f")
    derivative = sympy.Eq(f(t).diff(t), t)
    assert values_at_points.compare(derivative, sympy.Eq(f(t), t)) is None
    assert values_at_points.compare(sympy.Eq(f(x + 1), x), sympy.Eq(f(x), x - 1)) is None  # of more than a symbol
    assert values_at_points.compare(sympy.Eq(x**2, y**2), sympy.Eq(x, y)) is None  # nothing linear to solve for
    assert values_at_points.compare(sympy.Eq(sympy.log(x), sympy.log(-x)), sympy.Eq(x, y)) is None  # never true


def test_functions_of_symbols_count_as_symbols() -> None:
    t, k = sympy.symbols("t k")
    f = sympy.Function("f")
    assert values_at_points.compare(sympy.Eq(f(t), k * t), sympy.Eq(f(t) / t, k)) is None
    assert values_at_points.compare(sympy.Eq(f(t), k * t), sympy.Eq(f(t), k + t)) is False
