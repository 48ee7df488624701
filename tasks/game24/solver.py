"""24 points: every way to combine numbers, searched exactly; operations that reach the target, as an expression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

TARGET = 24


class Operation(NamedTuple):
    """`a sign b = result`, and the numbers left after it, in ascending order."""

    a: Fraction
    sign: str
    b: Fraction
    result: Fraction
    left: tuple[Fraction, ...]


def operations(numbers: Sequence[Fraction], whole: bool = False) -> Iterator[Operation]:
    """Every operation on two of the numbers; `whole` keeps to whole numbers that are not negative."""
    seen = set()
    for i, first in enumerate(numbers):
        for j in range(i + 1, len(numbers)):
            a, b = max(first, numbers[j]), min(first, numbers[j])
            if (a, b) in seen:
                continue
            seen.add((a, b))
            rest = [number for index, number in enumerate(numbers) if index not in (i, j)]
            results = [(a, "+", b, a + b), (a, "*", b, a * b), (a, "-", b, a - b)]
            results += [(b, "-", a, b - a)] if a != b and not whole else []
            results += [(a, "/", b, a / b)] if b else []
            results += [(b, "/", a, b / a)] if a and a != b and not whole else []
            for x, sign, y, result in results:
                if not whole or result.denominator == 1:
                    yield Operation(x, sign, y, result, tuple(sorted([*rest, result])))


@cache
def _search(numbers: tuple[Fraction, ...], whole: bool) -> tuple[Operation, ...] | None:
    if len(numbers) == 1:
        return () if numbers[0] == TARGET else None
    for operation in operations(numbers, whole):
        if (rest := _search(operation.left, whole)) is not None:
            return (operation, *rest)
    return None


def solve(cards: Sequence[int], whole: bool = False) -> tuple[Operation, ...] | None:
    """Operations that make the target of all cards, each used once; None if there are none.

    Args:
        cards: the numbers.
        whole: keep to whole numbers that are not negative on the way.
    """
    return _search(tuple(sorted(map(Fraction, cards))), whole)


def write_expression(cards: Sequence[int], chosen: Sequence[Operation]) -> str:
    """The operations as one expression of the cards, such as `8 / (3 - 8 / 3)`."""
    parts = [(Fraction(card), str(card)) for card in cards]
    for operation in chosen:
        texts = []
        for number in (operation.a, operation.b):
            index = next(index for index, (value, _) in enumerate(parts) if value == number)
            texts.append(parts.pop(index)[1])
        parts.append((operation.result, f"({texts[0]} {operation.sign} {texts[1]})"))
    return parts[0][1][1:-1] if chosen else parts[0][1]
