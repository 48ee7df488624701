"""What a move is worth: exactly, by random playouts, or by an engine with a budget of nodes. See tasks.task.Game."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from tasks.gomoku import engine as own_engine
from tasks.gomoku import playouts
from tasks.gomoku.board import Board, cell_name, read_cell


def read_move(answer: str, meta: Mapping[str, Any]) -> int | None:
    """The empty cell that an answer names; None if it names none."""
    board = Board.from_meta(meta)
    cell = read_cell(answer, board.size)
    return cell if cell is not None and not (board.own | board.other) >> cell & 1 else None


def value(move: int, meta: Mapping[str, Any]) -> float | None:
    """What the move is worth in the problem: with perfect play on a solved board, else 1 for a right answer."""
    worth = meta["values"].get(cell_name(move, Board.from_meta(meta).size))
    return None if worth is None else float(worth)


def win_rate(move: int, meta: Mapping[str, Any], count: int, rng: random.Random) -> float:
    """The mean of `count` random playouts after the move; a draw counts half."""
    return playouts.win_rate(Board.from_meta(meta).after(move), count, rng)


def engine(move: int, meta: Mapping[str, Any], nodes: int) -> float:
    """What the engine makes of the move, from 0 to 1, when it may look at so many positions."""
    return own_engine.win_rate(Board.from_meta(meta).after(move), nodes)
