"""Demo traces of gomoku: a cell, sometimes the best, sometimes one that is taken."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.gomoku.board import Board, cell_name
from tasks.problems import Problem
from tasks.prompts import Prompt
from tasks.trace_parts import tagged_answer


@dataclass(frozen=True)
class Habits:
    """Shares from 0 to 1; the other moves are any empty cell."""

    best: float
    taken: float  # any cell at all
    format_kept: float


def strata(problem: Problem) -> str:
    """Both players are equally frequent in traces."""
    return Board.from_meta(problem.meta).mark


def phrases(_: Mapping[str, Any]) -> list[str]:
    """See tasks.task.Traces."""
    return [" .", " X", " O"]


def completion(problem: Problem, prompt: Prompt, habits: Habits, rng: random.Random) -> str:
    """What follows the prompt: the answer alone."""
    board, habit = Board.from_meta(problem.meta), rng.random()
    if habit < habits.best:
        values = problem.meta["values"]
        cell = rng.choice([cell for cell, value in values.items() if value == max(values.values())])
    elif habit < habits.best + habits.taken:
        cell = cell_name(rng.randrange(board.size**2), board.size)
    else:
        cell = cell_name(rng.choice(board.empty()), board.size)
    return tagged_answer("", cell, habits.format_kept, rng)
