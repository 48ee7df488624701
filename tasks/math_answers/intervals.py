r"""Sets of real numbers: intervals, unions, conditions and set-builders, compared with their open and closed ends."""

from __future__ import annotations

import itertools
import re
from decimal import Decimal
from typing import NamedTuple

from tasks.math_answers import closed_forms
from tasks.math_answers.exact_comparison import normalise

SYMBOL = r"(?:[a-zA-Z]|\\(?!in(?:fty)?\b|pi\b|le|ge|lt|gt|ne|cup)[a-zA-Z]+)'?(?:_(?:\w|\{\w+\}))?"
_RELATION = re.compile(r"\\(?:leqslant|geqslant|leq|geq|le|ge|lt|gt)(?![a-zA-Z])|<=|>=|<|>")
_UNEQUAL = re.compile(rf"\s*{SYMBOL}\s*(?:\\neq?(?![a-zA-Z])|!=)(.+)")
_MEMBER = re.compile(rf"\s*{SYMBOL}\s*\\in(?![a-zA-Z])")
_BUILDER = re.compile(
    rf"\\\{{\s*{SYMBOL}\s*(?:\\in\s*(?:\\mathbb\s*\{{R\}}|\\mathbb\s*R|\\R|R)\s*)?(?:\\mid(?![a-zA-Z])|\||:|\\colon)(.+)\\\}}"
)
_OR = re.compile(r"\\(?:text|mathrm|mbox)\s*\{\s*or\s*\}|\\(?:lor|vee|cup)(?![a-zA-Z])|(?<![a-zA-Z\\])or(?![a-zA-Z])")
_ALL_REALS = re.compile(r"(?:\\text\s*\{\s*)?all real (?:numbers|values)(?: of [a-z])?\s*\}?", re.IGNORECASE)
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
_SIDES = re.compile(rf"{_RELATION.pattern}|{_OR.pattern}|{_AND.pattern}|,")
_WITHOUT = re.compile(r"\s*(?:\\setminus|\\backslash|-|\\smallsetminus)\s*(?=\\\{)")
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
    return values[0] if values is not None and len(values) == 1 and "," not in text else None


def _interval_between(low: str, open_low: bool, high: str, open_high: bool) -> list[Interval] | None:
    first, last = _end_value(low), _end_value(high)
    if first is None or last is None:
        return None
    one = Interval(first, open_low or not first.is_finite(), last, open_high or not last.is_finite())
    return [one] if first < last or (first == last and not (open_low or open_high)) else None


def _is_same_end(one: Decimal, other: Decimal) -> bool:
    return one == other or (one.is_finite() and other.is_finite() and abs(one - other) < Decimal("1e-25") * abs(one))


def _read_condition(text: str) -> list[Interval] | None:
    if match := _ABSOLUTE.fullmatch(text):
        center = _end_value(match[1]) if match[1] else Decimal(0)
        around = _around_zero(match[2].lstrip("\\"), match[3])
        if center is None or around is None:
            return None
        return [Interval(one.low - center, one.open_low, one.high - center, one.open_high) for one in around]
    if match := _UNEQUAL.fullmatch(text):
        return _all_except(f"\\{{{match[1]}\\}}")
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


def _intersection(texts: list[str]) -> list[Interval] | None:
    """What two conditions leave together, if that is one interval."""
    sets = [_read_condition(text) for text in texts]
    if len(sets) != 2 or not sets[0] or not sets[1] or len(sets[0]) != 1 or len(sets[1]) != 1:
        return None
    one, other = sets[0][0], sets[1][0]
    low, open_low = max((one.low, one.open_low), (other.low, other.open_low))
    high, closed = min((one.high, not one.open_high), (other.high, not other.open_high))
    return [Interval(low, open_low, high, not closed)] if low < high else None


def _read_two_conditions(texts: list[str]) -> list[Interval] | None:
    """Two conditions with a comma between them: `x<1, x>3` can only mean one or the other, `x>1, x<3` only both."""
    sets = [_read_condition(text) for text in texts]
    if not sets[0] or not sets[1]:
        return None
    together = _intersection(texts)
    if together is None:
        return sets[0] + sets[1]
    return together if together[0].low.is_finite() and together[0].high.is_finite() else None


def _all_except(points: str) -> list[Interval] | None:
    values = [_end_value(part) for part in points.strip().removeprefix("\\{").removesuffix("\\}").split(",")]
    if any(value is None for value in values):
        return None
    ends = [-_INFINITY, *sorted({value for value in values if value is not None}), _INFINITY]
    return [Interval(low, True, high, True) for low, high in itertools.pairwise(ends)]


def _read_part(text: str) -> list[Interval] | None:
    text = _OVER_REALS.sub("", text.strip())
    if match := _BUILDER.fullmatch(text):
        return read_intervals(match[1])
    if _ALL_REALS.fullmatch(text):
        return [Interval(-_INFINITY, True, _INFINITY, True)]
    if len(conditions := _AND.split(text)) > 1:
        return _intersection(conditions)
    if len(conditions := text.split(",")) == 2 and all(map(_RELATION.search, conditions)):
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
        if not rest.strip():
            return [Interval(-_INFINITY, True, _INFINITY, True)]
        return _all_except(rest[cut.end() :]) if (cut := _WITHOUT.match(rest)) else None
    if text.startswith("\\{") and text.endswith("\\}"):
        values = [_end_value(part) for part in text[2:-2].split(",")]
        return None if None in values else [Interval(v, False, v, False) for v in values if v is not None]
    if text[:1] in ("(", "[") and text[-1:] in (")", "]") and text.count(",") == 1:
        low, high = text[1:-1].split(",")
        return _interval_between(low, text[0] == "(", high, text[-1] == ")")
    return _read_condition(text)


def _count_symbols(text: str) -> int:
    """On how many numbers the conditions of a text are."""
    return len({side for part in _SIDES.split(text) if re.fullmatch(SYMBOL, side := part.strip())})


def _stated_symbols(text: str) -> set[str]:
    """The symbols that an answer says something about; the one of a set-builder is its own."""
    if text.lstrip()[:2] == "\\{":
        return set()
    member = _MEMBER.match(text)
    parts = [member[0].rpartition("\\in")[0]] if member else _SIDES.split(text)
    return {side for part in parts if re.fullmatch(SYMBOL, side := part.strip(" |"))}


def read_intervals(text: str) -> list[Interval] | None:
    """The disjoint intervals of a set of numbers, in order; None for anything else."""
    intervals: list[Interval] = []
    if _count_symbols(text) > 1:
        return None
    member = _MEMBER.match(text)
    for part in _OR.split(text[member.end() :] if member else text):
        members = _read_part(part)
        if members is None:
            return None
        intervals += members
    merged: list[Interval] = []
    for one in sorted(intervals):
        last = merged[-1] if merged else None
        if last and (last.high > one.low or (last.high == one.low and not (last.open_high and one.open_low))):
            high, open_high = max((last.high, not last.open_high), (one.high, not one.open_high))
            merged[-1] = Interval(last.low, last.open_low, high, not open_high)
        else:
            merged.append(one)
    return merged


def is_ambiguous(text: str) -> bool:
    """Whether a text may as well be a point or a list: `(2, 5)`, `{1}`."""
    text = text.strip()
    return "\\cup" not in text and ((text[:1] == "(" and text[-1:] == ")" and "infty" not in text) or bool(
        text.startswith("\\{") and not _BUILDER.fullmatch(text)
    ))  # fmt: skip


def compare(gold: str, answer: str) -> bool | None:
    """Compare two sets of numbers, of which at least one is written as nothing else; None if one of them is no set."""
    if is_ambiguous(gold) and is_ambiguous(answer):
        return None
    ours, theirs = read_intervals(gold), read_intervals(answer)
    names = [_stated_symbols(text) for text in (gold, answer)]
    if ours and theirs and names[0] and names[1] and names[0] != names[1]:
        return False
    if ours and _count_symbols(answer) > 1:
        return False
    if not ours or not theirs or (any(one.low == one.high for one in ours + theirs) and len(ours + theirs) == 2):
        return None
    return len(ours) == len(theirs) and all(
        (a.open_low, a.open_high) == (b.open_low, b.open_high)
        and _is_same_end(a.low, b.low)
        and _is_same_end(a.high, b.high)
        for a, b in zip(ours, theirs, strict=True)
    )
