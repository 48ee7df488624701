"""A small engine of our own: iterative deepening alpha-beta with a budget of nodes and rows as its judgement.

It stands where a strong engine would: no light package for this Python plays gomoku of any size, and each would have to
be in every trainer's environment.
"""

from __future__ import annotations

import math
from functools import cache

from tasks.gomoku.board import Board, cells_of, has_won, winning_cells, winning_masks

WON = 10_000.0
SCALE = 40.0  # of the judgement, in the logistic function that makes a win rate of it
WIDEST = 12  # moves of a position that are looked at
DEEPEST = 8  # moves


class _SpentError(Exception):
    """The budget is used up."""


@cache
def _neighbourhoods(size: int) -> tuple[int, ...]:
    """For each cell, the mask of the cells at most two away."""
    return tuple(
        sum(
            1 << row * size + column
            for row in range(max(0, cell // size - 2), min(size, cell // size + 3))
            for column in range(max(0, cell % size - 2), min(size, cell % size + 3))
        )
        for cell in range(size**2)
    )


def open_rows_value(board: Board) -> float:
    """What the rows that are still open are worth to the player to move: 4 to the power of the stones in each."""
    total = 0.0
    for mask in winning_masks(board.size, board.need):
        own, other = mask & board.own, mask & board.other
        if own and not other:
            total += 4.0 ** (own.bit_count() - 1)
        elif other and not own:
            total -= 4.0 ** (other.bit_count() - 1)
    return total


def win_rate(board: Board, nodes: int) -> float:
    """What the engine makes of a position for the player who has just moved, from 0 to 1.

    Args:
        board: the position after the move, so that the other player is to move.
        nodes: positions that it may look at, 1 or more; without enough for depth 1, the judgement alone decides.
    """
    score, search = open_rows_value(board), _Search(nodes)
    for depth in range(1, DEEPEST + 1):
        try:
            score = search.score(board, depth, -math.inf, math.inf)
        except _SpentError:
            break
    return 1 / (1 + math.exp(max(-700.0, min(700.0, score / SCALE))))


class _Search:
    def __init__(self, nodes: int) -> None:
        self.left = nodes

    def score(self, board: Board, depth: int, alpha: float, beta: float) -> float:
        """For the player to move; a win that is nearer counts more."""
        if not self.left:
            raise _SpentError
        self.left -= 1
        if has_won(board.other, board.size, board.need):
            return -WON - depth
        if not board.empty():
            return 0.0
        if not depth:
            return open_rows_value(board)
        best = -math.inf
        for cell in _candidate_cells(board):
            best = max(best, -self.score(board.after(cell), depth - 1, -beta, -max(alpha, best)))
            if best >= beta:
                break
        return best


def _candidate_cells(board: Board) -> list[int]:
    """A winning cell, or the cells that stop one, or the best empty cells near stones."""
    size, need = board.size, board.need
    if forced := winning_cells(board.own, board.other, size, need) or winning_cells(board.other, board.own, size, need):
        return cells_of(forced)
    stones, near = cells_of(board.own | board.other), 0
    for stone in stones:
        near |= _neighbourhoods(size)[stone]
    cells = cells_of(near & ~(board.own | board.other)) or board.empty()
    middle = (size - 1) / 2
    worth = dict.fromkeys(cells, 0.0)
    for mask in winning_masks(size, need):
        own, other = (mask & board.own).bit_count(), (mask & board.other).bit_count()
        if (own or other) and not (own and other):
            for cell in cells_of(mask & ~(board.own | board.other)):
                if cell in worth:
                    worth[cell] += 4.0 ** (own + other)
    cells.sort(key=lambda cell: (-worth[cell], abs(cell // size - middle) + abs(cell % size - middle)))
    return cells[:WIDEST]
