"""Maze problems of any size, each with a shortest solution of a length that is asked for.

Training and held-out mazes are disjoint: the split depends on a hash of the maze, whatever the wording and the order in
which its obstacles are named.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from system.errors import UserError
from tasks.maze.rules import Maze
from tasks.problem_generation import ProblemSampler, check_names
from tasks.problems import Problem

TASK = "maze"
TRIES = 20_000  # for one more maze before there counts as none
WORDINGS = ("full", "short")


def identity(maze: Maze) -> str:
    """What a problem asks, whatever the order in which it names the obstacles."""
    return f"{maze.width} {maze.height} {maze.goal} {sorted(maze.obstacles)}"


def question_text(maze: Maze, wording: str = "full") -> str:
    """The maze in words: `full` as the published questions, `short` such as `Goal 1,2 obstacles 3,1 0,2.`"""
    if wording == "full":
        return maze.sentence()
    cells = " ".join(f"{x},{y}" for x, y in maze.obstacles)
    return f"Goal {maze.goal[0]},{maze.goal[1]} obstacles {cells}."


def sample_maze(width: int, height: int, obstacles: int, rng: random.Random) -> Maze:
    """Any maze: obstacles in different columns, neither on the start nor on the goal."""
    cells = [(x, y) for y in range(height) for x in range(width)][1:]
    goal = rng.choice(cells)
    columns = sorted(rng.sample(range(width), obstacles))
    stand = [rng.choice([cell for cell in cells if cell[0] == x and cell != goal]) for x in columns]
    return Maze(width, height, goal, tuple(sorted(stand, key=lambda cell: cell[::-1])))


def generate(
    rows: int,
    split: str,
    seed: int,
    width: int = 4,
    height: int = 4,
    obstacles: int = 2,
    moves: Sequence[int] = (1, 6),
    wording: str = "full",
) -> list[Problem]:
    """`rows` distinct mazes of one split, the same for the same arguments.

    Args:
        rows: how many.
        split: `train` or `test`.
        seed: of every choice.
        width: columns of the board, 2 or more.
        height: rows of the board, 3 or more.
        obstacles: how many, at most one a column.
        moves: the fewest and the most moves of a shortest solution.
        wording: a name in WORDINGS.

    Raises:
        UserError: an argument is out of range, or there are no more mazes of that kind.
    """
    check_names(TASK, "wording", [wording], WORDINGS)
    if width < 2 or height < 3 or not 0 <= obstacles <= width:
        raise UserError(
            "a maze needs 2 columns, 3 rows and at most one obstacle a column; found "
            f"{width} columns, {height} rows and {obstacles} obstacles",
            code="argument-out-of-range",
        )
    sampler = ProblemSampler(TASK, split, seed)

    def attempt(_: str) -> Problem | None:
        maze = sample_maze(width, height, obstacles, sampler.rng)
        if not sampler.in_split(identity(maze)) or not sampler.is_new(identity(maze)):
            return None
        shortest = maze.shortest()
        if shortest is None or not moves[0] <= len(shortest) <= moves[1]:
            return None
        return sampler.problem(question_text(maze, wording), shortest, {**maze.meta(), "level": len(shortest)})

    return sampler.generate(rows, attempt, tries=TRIES, hint="for a larger maze or other numbers of moves")
