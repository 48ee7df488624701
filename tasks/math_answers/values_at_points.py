"""Expressions and equations compared by their values at points, which saves the seconds in which sympy simplifies."""

from __future__ import annotations

from typing import Any

POINTS = (0.31, -0.73, 1.27, -1.9)
CLEARLY = 1e-3  # of its size elsewhere, an equation's difference of sides that is no rounding


def compare(gold: Any, answer: Any) -> bool | None:
    """Whether two parsed answers are equal; None where points do not tell."""
    import sympy

    if isinstance(gold, sympy.Eq) and isinstance(answer, sympy.Eq):
        return False if _have_other_solutions(gold, answer) else None
    return _compare_expressions(gold, answer)


def _point_values(symbols: list[Any], start: float) -> dict[Any, float]:
    """A number for each symbol, all different."""
    return {symbol: start + 0.173 * i / len(symbols) for i, symbol in enumerate(symbols)}


def _compare_expressions(gold: Any, answer: Any) -> bool | None:
    """Whether two expressions are equal, as their values at two of four points show; None where those do not tell.

    Saves the seconds in which sympy fails to simplify the difference of unequal expressions to zero, and finds equal
    ones that it cannot prove, such as -ln x and ln(1/x). Points at which either has no real value do not count;
    expressions equal at two others (to nine digits) and different at none are equal. Plain numbers and percentages
    are left to math-verify, which rounds them, and so are single symbols, which may be words.
    """
    import sympy

    expressions = (gold, answer)
    if not all(isinstance(one, sympy.Expr) for one in expressions):
        return None
    symbols = sorted(gold.free_symbols | answer.free_symbols, key=str)
    if {str(symbol) for symbol in symbols} == {"i"}:
        return _equal_complex(*(one.subs(dict.fromkeys(symbols, sympy.I)) for one in expressions))
    if any(one.is_Number or one.is_Symbol for one in expressions):
        return None
    if symbols and any(one.has(sympy.Sum, sympy.Product) for one in expressions):
        return None  # of so many terms as a symbol says: at points between whole numbers both may be empty
    if not symbols and any(one.has(sympy.Float) or isinstance(one, sympy.Mul) for one in expressions):
        return None
    same, far = 0, 0
    for start in POINTS if symbols else POINTS[:1]:
        point = _point_values(symbols, start)
        try:
            expected, value = (one.evalf(15, subs=point) for one in expressions)
        except Exception:  # sympy's functions raise anything on values they cannot take: nothing learned
            continue
        if not (expected.is_Float and value.is_Float):
            continue
        difference, size = abs(expected - value), max(abs(expected), abs(value), 1e-9)
        same += bool(difference <= 1e-9 * size)
        far += bool(difference > 1e-6 * size)
        if max(same, far) == 2:
            break
    if far and not same:
        return False
    return True if same >= 2 and not far else None


def _equal_complex(gold: Any, answer: Any) -> bool | None:
    """Whether two expressions are the same complex number; None where one has no value."""
    try:
        expected, value = complex(gold.evalf(15)), complex(answer.evalf(15))
    except Exception:  # as in _compare_expressions
        return None
    return abs(expected - value) <= 1e-9 * max(abs(expected), abs(value), 1e-9)


def _have_other_solutions(gold: Any, answer: Any) -> bool:
    """Whether two equations have different solutions, as values show that solve the first and not the second.

    The values are found where one symbol of the first equation is linear: drawn for the others, and solved for it.
    Functions of symbols, such as theta(t), count as symbols. False where that says nothing.
    """
    import sympy
    from sympy.core.function import AppliedUndef

    functions = sorted(gold.atoms(AppliedUndef) | answer.atoms(AppliedUndef), key=str)
    if any(not argument.is_Symbol for function in functions for argument in function.args):
        return False
    names = {function: sympy.Dummy() for function in functions}
    first, second = ((one.lhs - one.rhs).xreplace(names) for one in (gold, answer))
    if any(one.has(sympy.Derivative, sympy.Integral, sympy.Sum, sympy.Product) for one in (first, second)):
        return False
    symbols = sorted(first.free_symbols | second.free_symbols, key=str)
    seen = []
    for start in POINTS:
        point = _point_values(symbols, start)
        for symbol in sorted(first.free_symbols, key=str):
            try:
                at = [float(first.evalf(15, subs={**point, symbol: x})) for x in (0, 1, 2)]
                slope = at[1] - at[0]
                if abs(slope) < 1e-6 * max(map(abs, at)) or abs(at[2] - at[1] - slope) > 1e-9 * abs(slope):
                    continue  # not there, or not linear
                root = -at[0] / slope
                near = [abs(float(second.evalf(15, subs={**point, symbol: root + x}))) for x in (0, 1, -1)]
            except Exception:  # as in _compare_expressions
                continue
            if max(near) > 0:
                seen.append(near[0] > CLEARLY * max(near))
            break
    return len(seen) >= 2 and all(seen)
