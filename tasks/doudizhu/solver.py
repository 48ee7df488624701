"""Two players with open hands: who wins with perfect play, how often random play wins, and random playouts.

A position is the hand of the player to move, the other hand, and the cards to beat (none: the player leads). Whoever
plays the last card of a hand wins. Passing gives the lead to the other player.
"""

from __future__ import annotations

import random
from functools import lru_cache

from tasks.doudizhu.cards import PASS, Cards, legal_moves, remaining_cards


@lru_cache(maxsize=1 << 16)
def _ordered_moves(hand: Cards, last: Cards) -> list[Cards]:
    """The legal moves, those of many cards first: they win most often, so that the search ends soon."""
    return sorted(legal_moves(hand, last), key=len, reverse=True)


@lru_cache(maxsize=1 << 18)
def wins(mine: Cards, theirs: Cards, last: Cards) -> bool:
    """Whether the player to move wins if both play perfectly."""
    return any(move_wins(mine, theirs, last, move) for move in _ordered_moves(mine, last))


def move_wins(mine: Cards, theirs: Cards, last: Cards, move: Cards) -> bool:
    """Whether a legal move wins if both play perfectly afterwards.

    Args:
        mine: the hand of the player who moves, sorted.
        theirs: the other hand, sorted.
        last: the cards to beat, or none.
        move: cards, or none to pass.
    """
    left = remaining_cards(mine, move)
    return not left or not wins(theirs, left, move)


@lru_cache(maxsize=1 << 18)
def random_play(mine: Cards, theirs: Cards, last: Cards) -> float:
    """The probability that the player to move wins if both choose among their legal moves at random: exact."""
    moves = _ordered_moves(mine, last)
    return sum(random_play_after(mine, theirs, move) for move in moves) / len(moves)


def random_play_after(mine: Cards, theirs: Cards, move: Cards) -> float:
    """The probability that a legal move wins if both play at random afterwards: what playouts estimate."""
    left = remaining_cards(mine, move)
    return 1.0 if not left else 1.0 - random_play(theirs, left, move)


def playout_win_rate(mine: Cards, theirs: Cards, move: Cards, count: int, rng: random.Random) -> float:
    """The share of `count` random playouts after a legal move that its player wins.

    Args:
        mine: the hand of the player who moves, sorted.
        theirs: the other hand, sorted.
        move: cards, or none to pass.
        count: of playouts, 1 or more.
        rng: of every choice.
    """
    return sum(_playout_wins(mine, theirs, move, rng) for _ in range(count)) / count


def _playout_wins(mine: Cards, theirs: Cards, move: Cards, rng: random.Random) -> bool:
    mover = True
    while left := remaining_cards(mine, move):
        mine, theirs, mover = theirs, left, not mover
        move = rng.choice(_ordered_moves(mine, move))
    return mover


def winning_moves(mine: Cards, theirs: Cards, last: Cards = PASS) -> list[Cards]:
    """The legal moves that win with perfect play."""
    return [move for move in _ordered_moves(mine, last) if move_wins(mine, theirs, last, move)]
