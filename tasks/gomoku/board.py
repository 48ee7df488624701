"""Gomoku's board, free style: X begins, and whoever first has `need` stones in a row (or more) wins.

Cells are numbered row by row from 0; stones are bit masks of cells. For readers a cell is its column's letter and its
row's number, counted from the top left: cell 0 is A1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

LARGEST = 19
_CELL = re.compile(r"([A-S])\s*0?([1-9]\d?)")


@cache
def winning_lines(size: int, need: int) -> tuple[tuple[int, ...], ...]:
    """The cells of every row of `need` cells that wins, on a board of size by size cells."""
    rows = []
    for y in range(size):
        for x in range(size):
            for dx, dy in ((1, 0), (0, 1), (1, 1), (-1, 1)):
                if 0 <= x + (need - 1) * dx < size and y + (need - 1) * dy < size:
                    rows.append(tuple((y + step * dy) * size + x + step * dx for step in range(need)))
    return tuple(rows)


@cache
def winning_masks(size: int, need: int) -> tuple[int, ...]:
    """`lines` as bit masks."""
    return tuple(sum(1 << cell for cell in line) for line in winning_lines(size, need))


@cache
def symmetries(size: int) -> tuple[tuple[int, ...], ...]:
    """The eight turns and reflections: where the cell that comes to each place was."""
    turns = []
    for turned in (False, True):
        for flip_x in (False, True):
            for flip_y in (False, True):
                places = []
                for y in range(size):
                    for x in range(size):
                        a, b = (size - 1 - x if flip_x else x), (size - 1 - y if flip_y else y)
                        places.append(a * size + b if turned else b * size + a)
                turns.append(tuple(places))
    return tuple(turns)


def has_won(stones: int, size: int, need: int) -> bool:
    """Whether the stones hold a winning row."""
    return any(mask & stones == mask for mask in winning_masks(size, need))


def winning_cells(stones: int, others: int, size: int, need: int) -> int:
    """The empty cells that complete a row for `stones`, as a mask."""
    cells = 0
    for mask in winning_masks(size, need):
        if not mask & others:
            left = mask & ~stones
            if left and not left & (left - 1):
                cells |= left
    return cells


def cells_of(mask: int) -> list[int]:
    """The cells of a mask, in ascending order."""
    return [cell for cell in range(mask.bit_length()) if mask >> cell & 1]


def cell_name(cell: int, size: int) -> str:
    """A cell for readers, such as `C4`."""
    return f"{chr(ord('A') + cell % size)}{cell // size + 1}"


def read_cell(text: str, size: int) -> int | None:
    """The cell of a text such as `C4` or `c 4`; None if it names none of the board."""
    match = _CELL.fullmatch(text.strip().upper())
    if not match:
        return None
    x, y = ord(match[1]) - ord("A"), int(match[2]) - 1
    return y * size + x if x < size and 0 <= y < size else None


class Board(NamedTuple):
    """A position: the stones of the player to move and of the other one."""

    size: int
    need: int
    own: int
    other: int

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Board:
        """The position of a problem; KeyError, TypeError or ValueError if its `meta` describes none."""
        size, need, rows = int(meta["size"]), int(meta["need"]), str(meta["board"]).split("/")
        text = "".join(rows)
        if not 2 <= need <= size <= LARGEST or [len(row) for row in rows] != [size] * size or set(text) - set(".XO"):
            raise ValueError(f"no board: {meta}")
        black, white = (sum(1 << cell for cell, stone in enumerate(text) if stone == mark) for mark in "XO")
        if black.bit_count() - white.bit_count() not in (0, 1):
            raise ValueError(f"not X and O in turns: {meta}")
        first = black.bit_count() == white.bit_count()
        return cls(size, need, *((black, white) if first else (white, black)))

    @property
    def mark(self) -> str:
        """The player to move: X or O."""
        return "X" if self.own.bit_count() == self.other.bit_count() else "O"

    def stones(self) -> str:
        """All cells in order, as X, O or a dot."""
        own, other = ("X", "O") if self.mark == "X" else ("O", "X")
        return "".join(
            own if self.own >> cell & 1 else other if self.other >> cell & 1 else "." for cell in range(self.size**2)
        )

    def rows(self) -> list[str]:
        """The rows from the top."""
        text = self.stones()
        return [text[start : start + self.size] for start in range(0, self.size**2, self.size)]

    def meta(self) -> dict[str, Any]:
        """What `from_meta` reads, for a problem table."""
        return {"size": self.size, "need": self.need, "board": "/".join(self.rows())}

    def empty(self) -> list[int]:
        """The empty cells."""
        taken = self.own | self.other
        return [cell for cell in range(self.size**2) if not taken >> cell & 1]

    def after(self, cell: int) -> Board:
        """The position after a move, as the other player sees it."""
        return Board(self.size, self.need, self.other, self.own | 1 << cell)

    def canonical(self) -> str:
        """The same text for positions that are turns or reflections of each other."""
        text = self.stones()
        return min("".join(text[cell] for cell in places) for places in symmetries(self.size))
