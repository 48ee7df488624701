"""The verdict of math-verify, on what its parser reads whole.

It may hang or exhaust memory on a hostile answer: call it only where it can be killed (grading.worker_pool).
"""

from __future__ import annotations

import math
import re
from typing import Any

from tasks.math_answers import formulas, units
from tasks.math_answers.exact_comparison import SCIENTIFIC, normalise
from tasks.math_answers.latex_symbols import for_math_verify, has_symbols

_TOO_LARGE = re.compile(
    r"\d\s*\^\s*\{?\s*\d+\s*\^|\^\s*[{(]?\s*-?\d{5,}|\d{5,}\s*!|\}\s*!"
)  # that sympy would write down
LONGEST_PARSED, DEEPEST_PARSED = 1000, 12  # characters, brackets: of answers that math-verify's parser is given
_DROPPED = re.compile(  # by math-verify: primes, but not apostrophes between thousands, and an index of a number
    r"['′\"](?!(?<=\d.)\d{3}(?!\d))|\^\s*\{?\s*\\(?:prime|circ)|\\(?:angle|phantom)|\d\s*_"
)


def is_within_tolerance(gold: Any, answer: Any, meta: dict[str, Any]) -> bool:
    """Whether two numbers agree within the problem's own `tolerance` (absolute) or `relative_tolerance`.

    Where each of several answers has a tolerance of its own, the smallest holds for all.
    """
    absolute, relative = meta.get("tolerance"), meta.get("relative_tolerance")
    if absolute is None and relative is None:
        return False
    if isinstance(absolute, list):
        absolute = min(absolute, default=None)
    try:
        expected, value = float(gold), float(answer)
    except (TypeError, ValueError, OverflowError):
        return False
    return abs(expected - value) <= max(float(absolute or 0), float(relative or 0) * abs(expected))


def verdict(same: bool) -> str:
    """`correct` or `wrong`."""
    return "correct" if same else "wrong"


def judge(gold: str, answer: str, meta: dict[str, Any]) -> str:
    """The verdict of math-verify, whose own time-outs are off: they use signals, which the worker needs.

    It gets what its parser reads whole, with letters as they are, and compares to many digits: as it is called by
    default, it takes the last fraction of a text that it cannot read, `R` for `r`, and 10^-20 for 10^-30.
    """
    from math_verify import verify
    from sympy.core.random import seed

    seed(0)  # sympy draws numbers to compare expressions: the same ones whatever was judged before
    gold, answer = (normalise(text) if SCIENTIFIC.fullmatch(text.strip("$ ")) else text for text in (gold, answer))
    source, symbols = gold.replace("\\$", ""), has_symbols(gold)
    gold, answer = (units.without_text(text) for text in (gold, answer))
    if not symbols:
        gold, answer = (units.without_letters(text) or text for text in (gold, answer))
    (expected, gold_text), (parsed, answer_text) = (
        parse_whole(for_math_verify(text, symbols), limit)
        for text, limit in ((gold, math.inf), (answer, max(LONGEST_PARSED, 2 * len(gold))))
    )
    if expected is None:
        if not gold_text or source.count("{") != source.count("}") or source.count("$") % 2 == 1:
            return "ungradable"
        return verdict(gold_text == answer_text)
    if parsed is None:
        return "wrong"
    if is_within_tolerance(expected, parsed, meta):
        return "correct"
    if (same := _compare_relations(expected, parsed)) is not None:
        return verdict(same)
    digits = {} if _has_decimals(expected, parsed) else {"float_rounding": 30, "numeric_precision": 50}
    same = verify(expected, parsed, timeout_seconds=None, **digits)
    return verdict(same and not _differ_relatively(expected, parsed))


def _compare_relations(gold: Any, answer: Any) -> bool | None:
    """Whether two relations differ by a sign at most; None if one is none. Solving them may take minutes."""
    from sympy import Eq, Expr, expand
    from sympy.core.relational import Relational

    if not isinstance(gold, Relational) or not isinstance(answer, Relational):
        return None
    if not all(isinstance(side, Expr) for side in (gold.lhs, gold.rhs, answer.lhs, answer.rhs)):
        return None
    ours, theirs = (one.lhs - one.rhs for one in (gold.canonical, answer.canonical))
    signs = (1, -1) if isinstance(gold, Eq) else (1,)
    return type(gold.canonical) is type(answer.canonical) and any(expand(ours - sign * theirs) == 0 for sign in signs)


def _has_decimals(*parsed: Any) -> bool:
    """Whether all symbols are gone and a decimal is there, which math-verify rounds to six digits."""
    from sympy import Float

    return any(one.has(Float) for one in parsed) and not any(one.free_symbols for one in parsed)


def parse_whole(text: str, limit: float) -> tuple[Any, str]:
    """What math-verify's parser makes of a text, None if it does not read all of it; and the text as it cleans it."""
    from latex2sympy2_extended.latex2sympy2 import ConversionConfig, latex2sympy
    from latex2sympy2_extended.math_normalization import NormalizationConfig, normalize_latex
    from math_verify.grader import should_treat_as_complex
    from sympy import Basic, Derivative

    nesting = max(formulas.nesting(text), text.count("|") // 2)
    if len(text) > limit or nesting > DEEPEST_PARSED or _TOO_LARGE.search(text) or _DROPPED.search(text):
        return None, text
    cleaned = normalize_latex(
        text, NormalizationConfig(basic_latex=True, malformed_operators=True, nits=True, boxed="none")
    )
    try:
        parsed = latex2sympy(
            cleaned,
            is_real=not should_treat_as_complex(cleaned),
            normalization_config=None,
            conversion_config=ConversionConfig(lowercase_symbols=False),
        )
    except Exception:  # the parser raises many kinds of errors on text that is not mathematics
        return None, cleaned
    derivatives = parsed.atoms(Derivative) if isinstance(parsed, Basic) else ()
    # The derivative of a symbol is 0 to it, where a function is meant
    return (parsed if all(one.expr.has(*one.variables) for one in derivatives) else None), cleaned


def _differ_relatively(gold: Any, answer: Any, tolerance: float = 1e-4) -> bool:
    """True for numbers that are far apart relatively: math-verify compares absolutely, so that 2^-99 equals 2^-98."""
    from sympy import UnevaluatedExpr

    if not (getattr(gold, "is_number", False) and getattr(answer, "is_number", False)):
        return False
    # math-verify 0.9 leaves the hundredth of a percent unevaluated, and the size of that has no order
    gold, answer = (number.doit() if number.has(UnevaluatedExpr) else number for number in (gold, answer))
    size = max(abs(gold.evalf(15)), abs(answer.evalf(15)))
    return bool(size != 0 and size < 1 and abs((gold - answer).evalf(15)) > tolerance * size)
