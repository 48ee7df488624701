"""Two sets of real numbers compared, with their open and closed ends, or by what solves a condition."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

from tasks.math_answers import equations, values_at_points
from tasks.math_answers.intervals import (
    BUILDER,
    SYMBOL,
    Interval,
    count_symbols,
    is_same_end,
    read_intervals,
    stated_symbols,
)

_LETTER = re.compile(r"\\[a-zA-Z]+(?:_(?:\w|\{\w+\}))?|[a-zA-Z](?:_(?:\w|\{\w+\}))?")
_NEAR = Fraction(1, 10**12)  # beside an end, where a condition is tried
_LONGEST_WITH_PARAMETERS, _MOST_ENDS = 200, 20  # characters; so that the work is bounded
_VALID_POINTS = 3  # values of parameters at which sets have to agree


def is_ambiguous(text: str) -> bool:
    """Whether a text may as well be a point or a list: `(2, 5)`, `{1}`."""
    text = text.strip()
    if re.search(r"\\(?:cup|cap|setminus)(?![a-z])", text):
        return False
    is_pair = text[:1] == "(" and text[-1:] == ")" and "infty" not in text
    return is_pair or (text.startswith("\\{") and not BUILDER.fullmatch(text))


def compare(gold: str, answer: str) -> bool | None:
    """Compare two sets of numbers, of which at least one is written as nothing else; None if one of them is no set."""
    if is_ambiguous(gold) and is_ambiguous(answer):
        return None
    ours, theirs = read_intervals(gold), read_intervals(answer)
    names = [stated_symbols(text) for text in (gold, answer)]
    if ours and theirs and names[0] and names[1] and names[0] != names[1]:
        return False
    if (ours is None) != (theirs is None):
        solved = _solves(ours or theirs or [], answer if ours else gold, names[0 if ours else 1])
        if solved is not None:
            return solved
    if ours is None and theirs is None:
        return _compare_with_parameters(gold, answer)
    if ours and count_symbols(answer) > 1:
        return False
    if not ours or not theirs or (any(one.low == one.high for one in ours + theirs) and len(ours + theirs) == 2):
        return None
    return _is_same(ours, theirs)


def _is_same(ours: list[Interval], theirs: list[Interval]) -> bool:
    return len(ours) == len(theirs) and all(
        (a.open_low, a.open_high) == (b.open_low, b.open_high)
        and is_same_end(a.low, b.low)
        and is_same_end(a.high, b.high)
        for a, b in zip(ours, theirs, strict=True)
    )


def _solves(intervals: list[Interval], text: str, names: set[str]) -> bool | None:
    """Whether intervals are what solves an inequality in one symbol, such as `x^2<4`; None for any other text.

    Tried at the ends, just beside them, between and beyond them.
    """
    builder = BUILDER.fullmatch(text)
    relation = equations.read_relation(builder[1].strip() if builder else text, frozenset())
    symbols = frozenset().union(*(side.symbols for side in relation.sides)) if relation else frozenset()
    if relation is None or len(symbols) != 1 or "=" in relation.signs or len(intervals) > _MOST_ENDS:
        return None
    (symbol,) = symbols
    if names and symbol not in names:
        return False
    ends = [Fraction(end) for one in intervals for end in (one.low, one.high) if end.is_finite()]
    around = sorted(
        {end + step for end in ends for step in (-100, -1, -_NEAR, 0, _NEAR, 1, 100)}
        or {Fraction(n) for n in (-9, 0, 9)}
    )
    between = [low + (high - low) * Fraction(n, 97) for low, high in itertools.pairwise(around) for n in (13, 51, 90)]
    for value in (*around, *between):
        inside = any(_is_inside(value, one) for one in intervals)
        if values_at_points.is_true_at({symbol: value}, relation.sides, relation.signs) != inside:
            return False
    return True


def _is_inside(value: Fraction, one: Interval) -> bool:
    low, high = (Fraction(end) if end.is_finite() else None for end in (one.low, one.high))
    above = low is None or value > low or (value == low and not one.open_low)
    return above and (high is None or value < high or (value == high and not one.open_high))


def _compare_with_parameters(gold: str, answer: str) -> bool | None:
    """Compare sets whose ends have symbols, such as `[-a,a]` and `|x| <= a`, at several values of these symbols."""
    bracketed = [
        text for text in (gold, answer) if text.strip()[:1] in "([" and text.strip()[-1:] in ")]" and "," in text
    ]
    if not bracketed or max(len(gold), len(answer)) > _LONGEST_WITH_PARAMETERS:
        return None
    parameters = sorted({name for text in bracketed for name in _LETTER.findall(text) if re.fullmatch(SYMBOL, name)})
    agreeing = 0
    for point in values_at_points.points(parameters) if parameters else ():
        ours, theirs = (read_intervals(_with_values(text, point)) for text in (gold, answer))
        if not ours or not theirs:
            continue
        if not _is_same(ours, theirs):
            return None
        agreeing += 1
    return True if agreeing >= _VALID_POINTS else None


def _with_values(text: str, point: dict[str, Fraction]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[0]
        return f"(\\frac{{{point[name].numerator}}}{{{point[name].denominator}}})" if name in point else name

    return _LETTER.sub(value, text)
