"""Maze problems of any size, each with a shortest solution of a length that is asked for.

Training and held-out mazes are disjoint: the split depends on a hash of the maze, whatever the wording and the order in
which its obstacles are named.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from system.errors import UserError
from tasks import problems as all_problems
from tasks.maze.rules import Maze
from tasks.problems import SPLITS, Problem, generated_id

TASK = "maze"
TRIES = 20_000  # draws of one more maze before there counts as none
WORDINGS = ("full", "short")


def split_of(maze: Maze) -> str:
    """The split that a maze belongs to."""
    return all_problems.split_of(f"{maze.width} {maze.height} {maze.goal} {sorted(maze.obstacles)}")


def question(maze: Maze, wording: str = "full") -> str:
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
        seed: of all draws.
        width: columns of the board, 2 or more.
        height: rows of the board, 3 or more.
        obstacles: how many, at most one a column.
        moves: the fewest and the most moves of a shortest solution.
        wording: a name in WORDINGS.

    Raises:
        UserError: an argument is out of range, or there are no more mazes of that kind.
    """
    if split not in SPLITS or wording not in WORDINGS:
        raise UserError(f"maze has the splits {SPLITS} and the wordings {WORDINGS}, not '{split}' and '{wording}'")
    if width < 2 or height < 3 or not 0 <= obstacles <= width:
        raise UserError(
            "a maze needs 2 columns, 3 rows and at most one obstacle a column; found "
            f"{width} columns, {height} rows and {obstacles} obstacles"
        )
    rng = random.Random(f"maze/{split}/{seed}")
    seen: set[Maze] = set()
    found: list[Problem] = []
    while len(found) < rows:
        for _ in range(TRIES):
            maze = sample_maze(width, height, obstacles, rng)
            if maze not in seen and split_of(maze) == split:
                seen.add(maze)
                shortest = maze.shortest()
                if shortest is not None and moves[0] <= len(shortest) <= moves[1]:
                    break
        else:
            raise UserError(
                f"maze has only {len(found):,} of {width} by {height} cells with {obstacles} obstacles and solutions "
                f"of {moves[0]} to {moves[1]} moves ({split}): ask for fewer rows, or for a larger maze"
            )
        text = question(maze, wording)
        meta = {**maze.meta(), "level": len(shortest)}
        found.append(Problem(generated_id(split, text), TASK, text, shortest, meta))
    return found
