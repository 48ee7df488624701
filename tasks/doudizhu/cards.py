"""Dou dizhu's cards and what may be played: the combinations that five cards can make, and which beats which.

Cards have no suits: a hand is a sorted tuple of ranks, 0 (a three) to 14 (the big joker).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

Cards = tuple[int, ...]
NAMES = ("3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K", "A", "2", "SJ", "BJ")
ACE, TWO, SMALL_JOKER, BIG_JOKER = 11, 12, 13, 14
DECK: Cards = (*(rank for rank in range(SMALL_JOKER) for _ in range(4)), SMALL_JOKER, BIG_JOKER)
ROCKET: Cards = (SMALL_JOKER, BIG_JOKER)
PASS: Cards = ()
MOST_CARDS = 5  # of a hand: with more there would be chains of pairs, planes and four with two
STRAIGHT = 5  # cards


class Combination(NamedTuple):
    """What cards are when they are played together; of two of the same kind the higher rank wins."""

    kind: str
    rank: int


@cache
def combination(cards: Cards) -> Combination | None:
    """What sorted cards of a hand are; None if they may not be played together."""
    if cards == ROCKET:
        return Combination("rocket", BIG_JOKER)
    counts = Counter(cards).most_common()
    shape = [count for _, count in counts]
    top = counts[0][0] if counts else 0
    if cards == tuple(range(top, top + STRAIGHT)) and cards[-1] <= ACE:
        return Combination("straight", top)
    kinds = {
        (1,): "single",
        (2,): "pair",
        (3,): "triple",
        (3, 1): "triple with one",
        (3, 2): "triple with a pair",
        (4,): "bomb",
    }
    kind = kinds.get(tuple(shape))
    return Combination(kind, top) if kind else None


def beats(cards: Cards, last: Cards) -> bool:
    """Whether playable cards may be played on the last cards, which are playable too."""
    mine, theirs = combination(cards), combination(last)
    if mine is None or theirs is None:
        return False
    if mine.kind == theirs.kind:
        return mine.rank > theirs.rank
    return mine.kind == "rocket" or (mine.kind == "bomb" and theirs.kind != "rocket")


def possible_leads(hand: Cards) -> Iterator[Cards]:
    """Everything that may be played from a hand of at most five cards when there is nothing to beat."""
    if len(hand) > MOST_CARDS:
        raise ValueError(f"a hand has at most {MOST_CARDS} cards, not {len(hand)}")
    counts = Counter(hand)
    for rank, count in counts.items():
        yield from ((rank,) * size for size in range(1, count + 1))
        if count >= 3:
            for other, others in counts.items():
                if other != rank:
                    yield from (tuple(sorted((rank,) * 3 + (other,) * size)) for size in range(1, min(others, 2) + 1))
    if combination(hand) == Combination("straight", hand[0] if hand else 0):
        yield hand
    if set(ROCKET) <= set(hand):
        yield ROCKET


def legal_moves(hand: Cards, last: Cards) -> list[Cards]:
    """Every move, in a fixed order: any lead if `last` is empty, else pass and what beats `last`."""
    moves = sorted(possible_leads(hand))
    return [PASS, *(move for move in moves if beats(move, last))] if last else moves


def remaining_cards(hand: Cards, move: Cards) -> Cards:
    """The hand after a move."""
    left = list(hand)
    for card in move:
        left.remove(card)
    return tuple(left)


def write_cards(cards: Sequence[int]) -> str:
    """Cards for readers, such as `3 3 10 BJ`; no cards are `pass`."""
    return " ".join(NAMES[card] for card in cards) or "pass"


def read_cards(text: str) -> Cards | None:
    """The cards of a text such as `10 3,3`, in any order; pass is empty, and None is no cards at all."""
    names = text.upper().replace(",", " ").split()
    if names == ["PASS"]:
        return PASS
    if not names or len(names) > len(DECK) or not set(names) <= set(NAMES):
        return None
    return tuple(sorted(NAMES.index(word) for word in names))
