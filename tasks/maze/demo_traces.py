"""Demo traces of the maze: where the obstacles go, then a move, again and again; some traces do not look at them.

A line gives the time, each obstacle's cell after that move with its next direction (v or ^), the move and the agent's
cell. The start is written first:

    0 3,1v 0,2v 0,0
    1 3,2v 0,3^ R 1,0
    2 3,3^ 0,2^ D 1,1
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.maze.rules import MOVES, SUCCESS, Cell, Maze, row_at
from tasks.problems import Problem
from tasks.prompts import Prompt
from tasks.trace_parts import tagged_answer, with_slips


@dataclass(frozen=True)
class Habits:
    """Shares from 0 to 1; the other traces follow the obstacles rightly and walk without a plan."""

    careful: float  # the shortest way
    blind: float  # to the goal in any order of moves, as if there were no obstacles
    unchecked: float  # an answer without a line
    format_kept: float
    slip: float  # of the lines, with a wrong cell


def strata(problem: Problem) -> int:
    """Every number of moves is equally frequent in traces."""
    return int(problem.meta["level"])


def phrases(_: Mapping[str, Any]) -> list[str]:
    """Every cell of the published size. See tasks.task.Traces."""
    return [f" {x},{y}{mark}" for x in range(4) for y in range(4) for mark in ("", "v", "^")]


def next_direction(y: int, time: int, height: int) -> str:
    """Where an obstacle that started in row y goes after `time` moves: v down or ^ up."""
    return "v" if row_at(y, time + 1, height) > row_at(y, time, height) else "^"


def trace_line(maze: Maze, time: int, move: str, cell: Cell) -> str:
    """One line of a trace, without its end; at time 0 without a move."""
    rows = [(x, row_at(y, time, maze.height), next_direction(y, time, maze.height)) for x, y in maze.obstacles]
    obstacles = "".join(f" {x},{y}{mark}" for x, y, mark in rows)
    return f"{time}{obstacles}{f' {move}' if move else ''} {cell[0]},{cell[1]}"


def trace_lines(maze: Maze, moves: str) -> list[str]:
    """The lines of a sequence of moves that is walked to its end."""
    lines, cell = [trace_line(maze, 0, "", (0, 0))], (0, 0)
    for time, move in enumerate(moves, start=1):
        cell = (cell[0] + MOVES[move][0], cell[1] + MOVES[move][1])
        lines.append(trace_line(maze, time, move, cell))
    return lines


def _wandering_moves(maze: Maze, rng: random.Random) -> str:
    """Moves that break no rule, without a plan, up to the goal or eight of them."""
    moves = ""
    while len(moves) < 8 and maze.walk(moves)[0] != SUCCESS:
        free = [move for move in MOVES if maze.walk(moves + move)[0] in (SUCCESS, "not on the goal")]
        if not free:
            break
        moves += rng.choice(free)
    return moves or "R"


def _blind_moves(maze: Maze, rng: random.Random) -> str:
    moves = list("R" * maze.goal[0] + "D" * maze.goal[1])
    rng.shuffle(moves)
    return "".join(moves)


def with_wrong_cell(text: str, maze: Maze, rng: random.Random) -> str:
    """The line with one cell changed to another of the board."""
    parts = text.split(" ")
    position = rng.choice([index for index, word in enumerate(parts) if "," in word])
    cell, mark = parts[position].rstrip("v^"), parts[position][len(parts[position].rstrip("v^")) :]
    cells = [f"{x},{y}" for x in range(maze.width) for y in range(maze.height) if f"{x},{y}" != cell]
    parts[position] = rng.choice(cells) + mark
    return " ".join(parts)


def completion(problem: Problem, prompt: Prompt, habits: Habits, rng: random.Random) -> str:
    """What follows the prompt: the lines and the answer."""
    maze, habit = Maze.from_meta(problem.meta), rng.random()
    careful, blind = habits.careful, habits.careful + habits.blind
    unchecked = blind <= habit < blind + habits.unchecked
    if habit < careful:
        moves = problem.answer or "R"
    else:
        moves = _blind_moves(maze, rng) if habit < blind or unchecked else _wandering_moves(maze, rng)
    lines = [] if unchecked else trace_lines(maze, moves)
    text = with_slips(lines, lambda line: with_wrong_cell(line, maze, rng), habits.slip, rng)
    return tagged_answer(text, moves, habits.format_kept, rng)
