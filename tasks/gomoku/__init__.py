"""Gomoku: choose a cell in a position with one decision that is judged exactly.

    question      A B C D E
                1 . . X . .
                2 . X O . .
                3 X O O . .
                4 . . . . .
                5 . . . X O
               Four or more in a row win. You play X, and it is your turn.
    right      D4, or any other cell of the highest value: here a draw (tasks/gomoku/problems.py)
    wrong      D1          (O wins)

>>> meta = {"size": 5, "need": 4, "board": "..X../.XO../XOO../...../...XO", "values": {"D4": 0.5, "D1": 0.0}}
>>> [TASK.verify(answer, "D4", meta) for answer in ("D4", "D1")]
['correct', 'wrong']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.gomoku import game
from tasks.gomoku.board import LARGEST, cell_name, read_cell
from tasks.task import Task


class Gomoku(Task):
    """The answer is the name of a cell."""

    answer_format = "tagged"

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "") -> str:
        """Judge a cell by its value. See Task.verify."""
        try:
            move = game.read_move(answer, meta)
            value = None if move is None else game.value(move, meta)
            best = max(meta["values"].values())
        except (KeyError, TypeError, ValueError, AttributeError):
            return "ungradable"
        if move is None:
            return "format_error" if read_cell(answer, LARGEST) is None else "wrong"
        return "correct" if value == best else "wrong"

    def canonical_answer(self, answer: str) -> str:
        """The cell's name. See Task.canonical_answer."""
        cell = read_cell(answer, LARGEST)
        return super().canonical_answer(answer) if cell is None else cell_name(cell, LARGEST)


TASK = Gomoku("gomoku")
