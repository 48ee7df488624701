"""Small boards solved exactly: alpha-beta with forced moves, open rows as bounds, symmetry, a table of positions.

python -m tasks.gomoku.solver --size 4 --need 4       # the empty board: its value, positions and seconds
"""

from __future__ import annotations

import time
from functools import cache

from system.command_line import argument_parser
from system.errors import UserError, run_command
from tasks.gomoku.board import Board, cells_of, has_won, symmetries, winning_cells, winning_lines, winning_masks

LARGEST_SOLVED = 5  # cells a side
SYMMETRIC_ABOVE = 12  # empty cells: with fewer, looking for the symmetric position costs more than it saves
MOST_STORED = 1 << 20  # positions
_EXACT, _AT_LEAST, _AT_MOST = 0, 1, 2


@cache
def _by_lines(size: int, need: int) -> tuple[int, ...]:
    """The cells, those in most rows first."""
    count = [sum(cell in line for line in winning_lines(size, need)) for cell in range(size**2)]
    return tuple(sorted(range(size**2), key=lambda cell: -count[cell]))


class Solver:
    """Solves positions of one board; remembers what it has solved."""

    def __init__(self, size: int, need: int) -> None:
        """Solve boards of size by size cells where `need` in a row win."""
        self.size, self.need, self.nodes = size, need, 0
        self._full = (1 << size**2) - 1
        self._known: dict[tuple[int, int], tuple[int, int]] = {}

    def value(self, own: int, other: int) -> int:
        """What the position is worth to the player to move with perfect play: 1 win, 0 draw, -1 loss.

        Args:
            own: the stones of the player to move.
            other: the other player's stones.
        """
        return -1 if has_won(other, self.size, self.need) else self._search(own, other, -1, 1)

    def _search(self, own: int, other: int, alpha: int, beta: int) -> int:
        self.nodes += 1
        size, need = self.size, self.need
        empty = self._full & ~(own | other)
        if not empty:
            return 0
        if winning_cells(own, other, size, need):
            return 1
        threats = winning_cells(other, own, size, need)
        if threats & (threats - 1):
            return -1
        mine = any(not mask & other for mask in winning_masks(size, need))
        theirs = any(not mask & own for mask in winning_masks(size, need))
        alpha, beta = (alpha if theirs else max(alpha, 0)), (beta if mine else min(beta, 0))
        if alpha >= beta:
            return alpha if not theirs else beta
        key = self._key(own, other, empty)
        kind, known = self._known.get(key, (None, 0))
        if kind == _EXACT or (kind == _AT_LEAST and known >= beta) or (kind == _AT_MOST and known <= alpha):
            return known
        best, floor = -2, alpha
        for cell in cells_of(threats) or _by_lines(size, need):
            if empty >> cell & 1:
                best = max(best, -self._search(other, own | 1 << cell, -beta, -floor))
                floor = max(floor, best)
                if floor >= beta:
                    break
        if len(self._known) < MOST_STORED:
            self._known[key] = (_AT_LEAST if best >= beta else _AT_MOST if best <= alpha else _EXACT, best)
        return best

    def _key(self, own: int, other: int, empty: int) -> tuple[int, int]:
        if empty.bit_count() <= SYMMETRIC_ABOVE:
            return own, other
        return min(zip(_symmetric_stones(own, self.size), _symmetric_stones(other, self.size), strict=True))


@cache
def _turn_tables(size: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """For each symmetry and each row of the board: the mask that the row's stones become."""
    tables = []
    for places in symmetries(size):
        goes_to = {cell: target for target, cell in enumerate(places)}
        tables.append(
            tuple(
                tuple(
                    sum(1 << goes_to[row * size + x] for x in range(size) if stones >> x & 1)
                    for stones in range(1 << size)
                )
                for row in range(size)
            )
        )
    return tuple(tables)


def _symmetric_stones(stones: int, size: int) -> list[int]:
    """The stones after each of the eight symmetries."""
    rows = [stones >> row * size & (1 << size) - 1 for row in range(size)]
    return [sum(table[stones] for table, stones in zip(tables, rows, strict=True)) for tables in _turn_tables(size)]


solver = cache(Solver)


def move_values(board: Board) -> dict[int, float]:
    """What every move is worth to its player with perfect play: 1 win, 0.5 draw, 0 loss; by cell.

    Raises:
        ValueError: the board is larger than what is solved.
    """
    if board.size > LARGEST_SOLVED:
        raise ValueError(f"boards of up to {LARGEST_SOLVED} cells a side are solved, not {board.size}")
    solve = solver(board.size, board.need)
    return {cell: (1 - solve.value(*board.after(cell)[2:])) / 2 for cell in board.empty()}


def main() -> None:
    """Command line: [--size N] [--need N]."""
    parser = argument_parser(__doc__)
    parser.add_argument("--size", type=int, default=4, help="cells a side")
    parser.add_argument("--need", type=int, default=4, help="in a row that win")
    arguments = parser.parse_args()
    if not 2 <= arguments.need <= arguments.size <= LARGEST_SOLVED:
        raise UserError(
            f"give 2 <= need <= size <= {LARGEST_SOLVED}, not {arguments.need} and {arguments.size}",
            code="argument-out-of-range",
        )
    start, solve = time.process_time(), Solver(arguments.size, arguments.need)
    value = {1: "a win for X", 0: "a draw", -1: "a win for O"}[solve.value(0, 0)]
    seconds = time.process_time() - start
    label = f"{arguments.size} by {arguments.size}, {arguments.need} in a row: {value}"
    print(f"{label}; {solve.nodes:,} positions looked at in {seconds:.1f} s of CPU time")


if __name__ == "__main__":
    run_command(main)
