"""Random playouts, many at once: empty cells are filled in a random order, and the row that is complete first wins."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from tasks.gomoku.board import Board, cells_of, winning_lines

AT_ONCE = 128  # playouts, so that a large board needs some tens of megabytes
_NEVER = 1 << 14


def win_rate(board: Board, count: int, rng: random.Random) -> float:
    """The mean result for the player who has just moved: 1 win, 0.5 draw, 0 loss.

    Args:
        board: the position after the move, so that the other player is to move.
        count: of playouts, 1 or more.
        rng: of the order in which cells are filled.
    """
    numbers = np.random.default_rng(rng.getrandbits(64))
    empty, total = len(board.empty()), 0.0
    for start in range(0, count, AT_ONCE):
        orders = numbers.random((min(AT_ONCE, count - start), empty)).argsort(axis=1) + 1
        total += float(results(board, orders).sum())
    return total / count


def results(board: Board, orders: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The result of each playout for the player who has just moved.

    Args:
        board: the position before the playouts; its player to move has the odd turns.
        orders: of shape (playouts, empty cells): the turn, from 1, in which each empty cell is filled.

    Returns:
        Of shape (playouts,): 1, 0.5 or 0.
    """
    rows = np.array(winning_lines(board.size, board.need))
    turn = np.zeros((len(orders), board.size**2), dtype=np.int16)
    turn[:, board.empty()] = orders
    mover = turn % 2 == 1
    mover[:, cells_of(board.own)] = True
    complete, of_mover = turn[:, rows].max(axis=2), mover[:, rows]
    first_mover = np.where(of_mover.all(axis=2), complete, _NEVER).min(axis=1)
    first_other = np.where(~of_mover.any(axis=2), complete, _NEVER).min(axis=1)
    won: npt.NDArray[np.float64] = 0.5 + 0.5 * np.sign(first_mover - first_other)
    return won
