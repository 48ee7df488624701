"""What a move is worth: exactly, and by random playouts. See tasks.task.Game."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from tasks.doudizhu import solver
from tasks.doudizhu.cards import Cards, read_cards
from tasks.doudizhu.problems import Position


def read_move(answer: str, meta: Mapping[str, Any]) -> Cards | None:
    """The legal move that an answer states; None if it states none."""
    move = read_cards(answer)
    return move if move is not None and move in Position.from_meta(meta).legal() else None


def value(move: Cards, meta: Mapping[str, Any]) -> float:
    """1 if the move wins with perfect play, else 0."""
    return float(solver.move_wins(*Position.from_meta(meta), move))


def win_rate(move: Cards, meta: Mapping[str, Any], count: int, rng: random.Random) -> float:
    """The share of `count` random playouts that the player of the move wins."""
    position = Position.from_meta(meta)
    return solver.playout_win_rate(position.mine, position.theirs, move, count, rng)
