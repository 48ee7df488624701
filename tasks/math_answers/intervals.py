"""Sets of real numbers: intervals, unions, conditions and set-builders, read with their open and closed ends."""

from __future__ import annotations

import itertools
import re
from decimal import Decimal
from typing import NamedTuple

from tasks.math_answers import closed_forms, formulas, values_at_points
from tasks.math_answers.exact_comparison import normalise

SYMBOL = r"(?:[a-zA-Z]|\\(?!in(?:fty)?\b|pi\b|le|ge|lt|gt|ne|cup)[a-zA-Z]+)'?(?:_(?:\w|\{\w+\}))?"
_RELATION = re.compile(r"\\(?:leqslant|geqslant|leq|geq|le|ge|lt|gt)(?![a-zA-Z])|<=|>=|<|>")
_UNEQUAL = re.compile(
    rf"\s*{SYMBOL}\s*(?:(?:\\neq?(?![a-zA-Z])|!=)([^<>=]+)|\\not(?:\s*\\)?in\s*\\\{{([^<>=]+)\\\}})\s*"
)
_POINT = re.compile(rf"\s*({SYMBOL})\s*=([^<>=]+)")
_MEMBER = re.compile(rf"\s*{SYMBOL}\s*\\in(?![a-zA-Z])")
BUILDER = re.compile(
    rf"\\\{{\s*{SYMBOL}\s*(?:\\in\s*(?:\\mathbb\s*\{{R\}}|\\mathbb\s*R|\\R|R)\s*)?(?:\\mid(?![a-zA-Z])|\||:|\\colon)(.+)\\\}}"
)
_OR = re.compile(r"\\(?:text|mathrm|mbox)\s*\{\s*or\s*\}|\\(?:lor|vee|cup)(?![a-zA-Z])|(?<![a-zA-Z\\])or(?![a-zA-Z])")
_ALL_REALS = re.compile(
    r"(?:\\text\s*\{\s*)?(?:all )?(?:the )?(?:real numbers|(?<=all )real values|(?<=all )reals)(?: of [a-z])?\s*\}?",
    re.IGNORECASE,
)
_REALS = re.compile(r"\\mathbb\s*\{?R\}?|\\R(?![a-zA-Z])")
# As plain notation writes them
_SIGNED = {
    "^{+}": [(0, True, 1)], "^{-}": [(-1, True, 0)], "_{\\ge 0}": [(0, False, 1)], "_{\\le 0}": [(-1, False, 0)],
    "^{*}": [(-1, True, 0), (0, True, 1)],
}  # fmt: skip
_ABSOLUTE = re.compile(
    rf"\s*(?:\||\\vert|\\lvert)\s*{SYMBOL}\s*([-+][^|<>]+?)?\s*(?:\||\\vert|\\rvert)\s*({_RELATION.pattern})(.+)"
)
_OVER_REALS = re.compile(rf",\s*{SYMBOL}\s*\\in\s*(?:\\mathbb\s*\{{?R\}}?|\\R)\s*$")
_AND = re.compile(
    r"\\(?:text|mathrm|mbox)\s*\{\s*and\s*\}|\\(?:land|wedge|cap)(?![a-zA-Z])|(?<![a-zA-Z\\])and(?![a-zA-Z])"
)
_COMMA = re.compile(r",(?![^(\[{]*[)\]}])")  # outside brackets
_SIDES = re.compile(rf"{_RELATION.pattern}|{_OR.pattern}|{_AND.pattern}|,")
_WITHOUT = re.compile(r"\s*(?:\\setminus|\\backslash|\\smallsetminus|(?<=[}R)\]])\s*-)\s*(?=\\\{|[(\[])")
_INFINITY = Decimal("Infinity")


class Interval(NamedTuple):
    """From `low` to `high`; an end that is open, or infinite, does not belong to it."""

    low: Decimal
    open_low: bool
    high: Decimal
    open_high: bool


def _end_value(text: str) -> Decimal | None:
    text = text.strip().removeprefix("+")
    if text in ("\\infty", "-\\infty"):
        return -_INFINITY if text[0] == "-" else _INFINITY
    values = closed_forms.closed_form_values(normalise(text))
    if values is None and (formula := formulas.read(text)) and not formula.symbols:
        return values_at_points.decimal_value(formula)
    return values[0] if values is not None and len(values) == 1 and "," not in text else None


def _interval_between(low: str, open_low: bool, high: str, open_high: bool) -> list[Interval] | None:
    first, last = _end_value(low), _end_value(high)
    if first is None or last is None:
        return None
    one = Interval(first, open_low or not first.is_finite(), last, open_high or not last.is_finite())
    return [one] if first < last or (first == last and not (open_low or open_high)) else None


def is_same_end(one: Decimal, other: Decimal) -> bool:
    """Whether two ends are the same number, up to the rounding of their last digits."""
    return one == other or (one.is_finite() and other.is_finite() and abs(one - other) < Decimal("1e-25") * abs(one))


def _read_condition(text: str) -> list[Interval] | None:
    if match := _ABSOLUTE.fullmatch(text):
        center = _end_value(match[1]) if match[1] else Decimal(0)
        around = _around_zero(match[2].lstrip("\\"), match[3])
        if center is None or around is None:
            return None
        return [Interval(one.low - center, one.open_low, one.high - center, one.open_high) for one in around]
    if match := _UNEQUAL.fullmatch(text):
        return _all_except(match[1] or match[2])
    sides, signs = _RELATION.split(text), [sign.lstrip("\\") for sign in _RELATION.findall(text)]
    places = [index for index, side in enumerate(sides) if re.fullmatch(rf"\s*{SYMBOL}\s*", side)]
    if len(places) != 1 or len(sides) not in (2, 3) or (len(sides) == 3 and places != [1]):
        return None
    if len({sign[0] in "lL<" for sign in signs}) != 1:
        return None
    if signs[0][0] not in "l<":  # mirror: a > x > b is b < x < a
        sides, signs = sides[::-1], signs[::-1]
    opens = ["e" not in sign and "=" not in sign for sign in signs]
    if len(sides) == 3:
        return _interval_between(sides[0], opens[0], sides[2], opens[1])
    if re.fullmatch(rf"\s*{SYMBOL}\s*", sides[0]):
        return _interval_between("-\\infty", True, sides[1], opens[0])
    return _interval_between(sides[0], opens[0], "\\infty", True)


def _around_zero(sign: str, size: str) -> list[Interval] | None:
    """What `|x| < size` and the like stand for."""
    value, opened = _end_value(size), "e" not in sign and "=" not in sign
    if value is None or value <= 0:
        return None
    if sign[0] in "l<":
        return [Interval(-value, opened, value, opened)]
    return [Interval(-_INFINITY, True, -value, opened), Interval(value, opened, _INFINITY, True)]


def _intersection(one: list[Interval], other: list[Interval]) -> list[Interval]:
    """What belongs to both."""
    both = []
    for first, second in itertools.product(one, other):
        low, open_low = max((first.low, first.open_low), (second.low, second.open_low))
        high, closed = min((first.high, not first.open_high), (second.high, not second.open_high))
        if low < high or (low == high and closed and not open_low):
            both.append(Interval(low, open_low, high, not closed))
    return both


def _complement(intervals: list[Interval]) -> list[Interval]:
    """What does not belong to disjoint intervals in order."""
    ends = [
        (-_INFINITY, True),
        *((end, opened) for one in intervals for end, opened in (one[:2], one[2:])),
        (_INFINITY, True),
    ]
    gaps = []
    for (low, low_opened), (high, high_opened) in zip(ends[::2], ends[1::2], strict=True):
        opened = (low == -_INFINITY or not low_opened, high == _INFINITY or not high_opened)
        if low < high or (low == high and not any(opened)):
            gaps.append(Interval(low, opened[0], high, opened[1]))
    return gaps


def _read_all(texts: list[str]) -> list[Interval] | None:
    """What several conditions leave together."""
    left = [Interval(-_INFINITY, True, _INFINITY, True)]
    for text in texts:
        if (members := _read_part(text)) is None:
            return None
        left = _intersection(left, _merged(members))
    return left


def _read_two_conditions(texts: list[str]) -> list[Interval] | None:
    """Two conditions with a comma between them: `x<1, x>3` can only mean one or the other, `x>1, x<3` only both."""
    sets = [_read_condition(text) for text in texts]
    if not sets[0] or not sets[1]:
        return None
    together = _intersection(sets[0], sets[1])
    if not together:
        return sets[0] + sets[1]
    return together if len(together) == 1 and together[0].low.is_finite() and together[0].high.is_finite() else None


def _all_except(points: str) -> list[Interval] | None:
    values: set[Decimal] = set()
    for part in points.split(","):
        signs = "+-" if "\\pm" in part else "+"
        ends = [_end_value(part.replace("\\pm", sign if sign == "-" else "")) for sign in signs]
        if None in ends:
            return None
        values |= {value for value in ends if value is not None}
    return _complement([Interval(value, False, value, False) for value in sorted(values)])


def _read_part(text: str) -> list[Interval] | None:
    text = _OVER_REALS.sub("", text.strip())
    if match := BUILDER.fullmatch(text):
        return read_intervals(match[1])
    if _ALL_REALS.fullmatch(text):
        return [Interval(-_INFINITY, True, _INFINITY, True)]
    if len(conditions := _AND.split(text)) > 1:
        return _read_all(conditions)
    if cut := _WITHOUT.search(text):
        whole, removed = _read_part(text[: cut.start()]), _read_part(text[cut.end() :])
        return _intersection(_merged(whole), _complement(_merged(removed))) if whole and removed else None
    conditions = _COMMA.split(text)
    excluded = sum(_UNEQUAL.fullmatch(one) is not None for one in conditions)
    if excluded and len(conditions) > 1 and all(_UNEQUAL.fullmatch(one) or _RELATION.search(one) for one in conditions):
        return _read_all(conditions)
    if len(conditions) == 2 and all(map(_RELATION.search, conditions)):
        return _read_two_conditions(conditions)
    if text[:1] + text[-1:] in ("][", "]]", "[["):  # French: an end that looks away is open
        text = ("(" if text[0] == "]" else "[") + text[1:-1] + (")" if text[-1] == "[" else "]")
    if match := _REALS.match(text):
        rest = text[match.end() :]
        if halves := _SIGNED.get(rest.strip()):
            return [
                Interval(
                    low * _INFINITY if low else Decimal(0),
                    opened or bool(low),
                    high * _INFINITY if high else Decimal(0),
                    opened or bool(high),
                )
                for low, opened, high in halves
            ]
        return None if rest.strip() else [Interval(-_INFINITY, True, _INFINITY, True)]
    if text.startswith("\\{") and text.endswith("\\}"):
        values = [_end_value(part) for part in text[2:-2].split(",")]
        return None if None in values else [Interval(v, False, v, False) for v in values if v is not None]
    if text[:1] in ("(", "[") and text[-1:] in (")", "]") and text.count(",") == 1:
        low, high = text[1:-1].split(",")
        return _interval_between(low, text[0] == "(", high, text[-1] == ")")
    return _read_condition(text)


def count_symbols(text: str) -> int:
    """On how many numbers the conditions of a text are."""
    return len({side for part in _SIDES.split(text) if re.fullmatch(SYMBOL, side := part.strip())})


def stated_symbols(text: str) -> set[str]:
    """The symbols that an answer says something about; the one of a set-builder is its own."""
    if text.lstrip()[:2] == "\\{":
        return set()
    member = _MEMBER.match(text)
    parts = [member[0].rpartition("\\in")[0]] if member else _SIDES.split(text)
    return {side for part in parts if re.fullmatch(SYMBOL, side := part.strip(" |"))}


def read_intervals(text: str) -> list[Interval] | None:
    """The disjoint intervals of a set of numbers, in order; None for anything else."""
    intervals: list[Interval] = []
    if count_symbols(text) > 1:
        return None
    member = _MEMBER.match(text)
    parts = _OR.split(text[member.end() :] if member else text)
    for part in parts:
        members = _read_part(part)
        if members is None and len(parts) > 1 and (match := _POINT.fullmatch(part)):
            value = _end_value(match[2])
            if value is not None and stated_symbols(text) <= {match[1]}:
                members = [Interval(value, False, value, False)]
        if members is None:
            return None
        intervals += members
    return None if all(map(_POINT.fullmatch, parts)) else _merged(intervals)


def _merged(intervals: list[Interval]) -> list[Interval]:
    """Disjoint intervals, in order."""
    merged: list[Interval] = []
    for one in sorted(intervals):
        last = merged[-1] if merged else None
        if last and (last.high > one.low or (last.high == one.low and not (last.open_high and one.open_low))):
            high, open_high = max((last.high, not last.open_high), (one.high, not one.open_high))
            merged[-1] = Interval(last.low, last.open_low, high, not open_high)
        else:
            merged.append(one)
    return merged
