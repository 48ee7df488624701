"""The maze: a board, a goal, and obstacles that move up and down while the agent walks; stated rules and shortest path.

x grows to the right and y downwards, both from 0. After each move every obstacle moves one cell within its column, at
first downwards; it turns at the edges. The agent fails where it leaves the board or stands on an obstacle, and succeeds
if it is on the goal after its last move.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Cell = tuple[int, int]  # x, y
MOVES: dict[str, Cell] = {"R": (1, 0), "D": (0, 1), "L": (-1, 0), "U": (0, -1)}
MOST_MOVES = 500  # of an answer; a longer one is not read
SUCCESS, AWAY, LEFT, HIT = "on the goal", "not on the goal", "left the board", "hit an obstacle"
_SENTENCE = re.compile(
    r"The agent is at \(0, 0\)\. The goal is at \((\d+), (\d+)\)\. "
    r"Obstacles are located at ((?:\(\d+, \d+\)(?:, )?)+)\."
)


def row_at(y: int, time: int, height: int) -> int:
    """The row, after `time` moves, of an obstacle that starts in row y."""
    if height == 1:
        return 0
    phase = (y + time) % (2 * (height - 1))
    return phase if phase < height else 2 * (height - 1) - phase


@dataclass(frozen=True)
class Maze:
    """One maze; the agent starts at (0, 0). Obstacles stand in different columns at first, and so they always do."""

    width: int
    height: int
    goal: Cell
    obstacles: tuple[Cell, ...]

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Maze:
        """The maze of a problem; KeyError, TypeError or ValueError if its `meta` describes none."""
        obstacles = tuple((int(x), int(y)) for x, y in meta["obstacles"])
        goal_x, goal_y = meta["goal"]
        maze = cls(int(meta["width"]), int(meta["height"]), (int(goal_x), int(goal_y)), obstacles)
        if not all(maze.inside(cell) for cell in (maze.goal, *obstacles)):
            raise ValueError(f"{maze} has something outside the board")
        return maze

    def meta(self) -> dict[str, Any]:
        """What `from_meta` reads, for a problem table."""
        return {
            "width": self.width,
            "height": self.height,
            "goal": list(self.goal),
            "obstacles": [list(cell) for cell in self.obstacles],
        }

    def inside(self, cell: Cell) -> bool:
        """Whether a cell is on the board."""
        return 0 <= cell[0] < self.width and 0 <= cell[1] < self.height

    def obstacles_at(self, time: int) -> tuple[Cell, ...]:
        """Where the obstacles are after so many moves, in the order of the question."""
        return tuple((x, row_at(y, time, self.height)) for x, y in self.obstacles)

    def walk(self, moves: str) -> tuple[str, list[Cell]]:
        """How a sequence ends, and the agent's cells from the start to there.

        Args:
            moves: letters of MOVES.

        Returns:
            SUCCESS, AWAY, LEFT or HIT; a cell for every time until then.
        """
        cell, cells = (0, 0), [(0, 0)]
        for time, move in enumerate(moves, start=1):
            cell = (cell[0] + MOVES[move][0], cell[1] + MOVES[move][1])
            cells.append(cell)
            if not self.inside(cell):
                return LEFT, cells
            if cell in self.obstacles_at(time):
                return HIT, cells
        return (SUCCESS if cell == self.goal else AWAY), cells

    def shortest(self, order: Sequence[str] = tuple(MOVES)) -> str | None:
        """A shortest sequence that succeeds, by breadth-first search over position and time; None if there is none.

        Args:
            order: of the moves; among several shortest sequences it decides which is found.
        """
        period = max(2 * (self.height - 1), 1)
        seen, queue = {((0, 0), 0)}, deque([((0, 0), "")])
        while queue:
            cell, moves = queue.popleft()
            if cell == self.goal:
                return moves
            blocked = self.obstacles_at(len(moves) + 1)
            for move in order:
                there = (cell[0] + MOVES[move][0], cell[1] + MOVES[move][1])
                state = (there, (len(moves) + 1) % period)
                if self.inside(there) and there not in blocked and state not in seen:
                    seen.add(state)
                    queue.append((there, moves + move))
        return None

    def sentence(self) -> str:
        """The maze in the words of the published questions, which are of 4 by 4 cells; other sizes are stated first."""
        size = "" if (self.width, self.height) == (4, 4) else f"The maze is {self.width} by {self.height} cells. "
        obstacles = ", ".join(map(str, self.obstacles))
        return f"{size}The agent is at (0, 0). The goal is at {self.goal}. Obstacles are located at {obstacles}."


def read_maze(sentence: str, width: int = 4, height: int = 4) -> Maze:
    """The maze of a published question; ValueError if it is none."""
    match = _SENTENCE.fullmatch(sentence.strip())
    if not match:
        raise ValueError(f"no maze: {sentence[:80]}")
    numbers = [int(number) for number in re.findall(r"\d+", match[3])]
    obstacles = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    return Maze(width, height, (int(match[1]), int(match[2])), obstacles)


def read_moves(answer: str) -> str | None:
    """The moves of an answer such as `RRDD`, spaces, commas and case aside; None if it is something else."""
    moves = re.sub(r"[\s,]+", "", answer).upper()
    return moves if moves and len(moves) <= MOST_MOVES and set(moves) <= set(MOVES) else None
