"""Check a maze's reasoning: after each move, where the agent and the obstacles are.

Two ways of writing are understood: the lines of tasks/maze/demo_traces.py, and lines such as

    Step 1: R, agent at (1, 0), obstacles at (3, 2), (0, 3)

The agent is followed from the cell that was stated last, so that one fault is counted once; the time is the number of
moves so far. That a move is unwise is no fault of a step: the verdict on the answer says so.
"""

from __future__ import annotations

import re
from typing import Any

from tasks.maze.demo_traces import next_direction
from tasks.maze.rules import MOVES, Cell, Maze
from tasks.problems import Problem
from tasks.reasoning_steps import Step, judged_step, numbered_lines

RIGHT_HABITS: dict[str, Any] = {"slip": 0.0, "careful": 0.4, "blind": 0.3}  # traces without a fault
_SHORT = re.compile(r"(\d{1,4})((?: \d{1,3},\d{1,3}[v^])*)(?: ([RLUD]))? (-?\d{1,3}),(-?\d{1,3})")
_OBSTACLE = re.compile(r"(\d+),(\d+)([v^])")
# Between a move and the agent's cell only words stand that say so: any other line might mean something else.
_FREE = re.compile(
    r"(?:(?:step|move)\s*)?(?:\d{1,3}\s*[.:)]\s*)?(?:move\s+)?([RLUD])(?![A-Za-z'])"
    r"(?:[\s:,;=>→-]|the|agent|moves?|is|now|at|to|goes|position)*\((-?\d{1,3}),\s*(-?\d{1,3})\)",
    re.IGNORECASE,
)
_CELL = re.compile(r"\((-?\d{1,3}),\s*(-?\d{1,3})\)")


def check(completion: str, problem: Problem) -> list[Step] | None:
    """The steps of a completion; see Task.check_steps."""
    try:
        maze = Maze.from_meta(problem.meta)
    except (KeyError, TypeError, ValueError):
        return None
    steps, cell, time = [], (0, 0), 0
    for number, text in numbered_lines(completion):
        faults = None
        if short := _SHORT.fullmatch(text):
            wrong_time = int(short[1]) not in (0, time + 1)
            faults = [f"after move {time} comes move {time + 1}"] if wrong_time else []
            time = int(short[1])
            more, cell = _short_line_faults(maze, short, cell, time)
            faults += more
        elif free := _FREE.match(text):
            time, move, stated = time + 1, free[1].upper(), (int(free[2]), int(free[3]))
            obstacles = text[free.end() :].lower().partition("obstacle")[2]
            seen = [(int(x), int(y)) for x, y in _CELL.findall(obstacles)]
            faults, cell = [*_agent_faults(move, cell, stated), *_obstacle_faults(maze, time, seen)], stated
        steps.append(judged_step(number, text, faults))
    return steps


def _short_line_faults(maze: Maze, line: re.Match[str], cell: Cell, time: int) -> tuple[list[str], Cell]:
    """Faults of a line in the traces' words, and the agent's cell as stated."""
    stated = (int(line[4]), int(line[5]))
    if time == 0:
        faults = [] if stated == (0, 0) and not line[3] else ["the agent starts at (0, 0)"]
    else:
        faults = _agent_faults(line[3], cell, stated) if line[3] else ["no move"]
    marked = [(int(x), int(y), mark) for x, y, mark in _OBSTACLE.findall(line[2])]
    faults += _obstacle_faults(maze, time, [(x, y) for x, y, _ in marked])
    true = {(x, next_direction(y, time, maze.height)) for x, y in maze.obstacles}
    if any((x, mark) not in true for x, _, mark in marked):
        faults.append("an obstacle moves the other way next")
    return faults, stated


def _agent_faults(move: str, before: Cell, stated: Cell) -> list[str]:
    there = (before[0] + MOVES[move][0], before[1] + MOVES[move][1])
    return [] if stated == there else [f"{move} leads from {before} to {there}, not {stated}"]


def _obstacle_faults(maze: Maze, time: int, stated: list[Cell]) -> list[str]:
    """Every stated obstacle has to be where one is; if as many are stated as there are, all of them."""
    true = maze.obstacles_at(time)
    if set(stated) <= set(true) and (len(stated) < len(true) or set(stated) == set(true)):
        return []
    return [f"after {time} moves obstacles are at {', '.join(map(str, true))}"]
