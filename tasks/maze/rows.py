"""Rows of the published mazes, https://github.com/KotoHanon/VERL-Maze: columns map, action_seq and instruct.

The gold answer is a shortest sequence by the stated rules. `meta.published_answer` is the row's own, often a wrong one.
"""

from __future__ import annotations

from typing import Any

from tasks.maze.rules import read_maze
from tasks.problems import Problem, index_id


def convert(row: dict[str, Any], index: int, task: str, columns: dict[str, Any]) -> Problem:
    """One row as a problem, without a gold answer where the goal cannot be reached; see tasks.row_converter.convert."""
    question = str(row["instruct"]).strip()
    maze = read_maze(question)
    drawn = "".join(str(row["map"]).split())
    if [drawn.find("2"), *(position for position, cell in enumerate(drawn) if cell == "3")] != [
        y * maze.width + x for x, y in (maze.goal, *sorted(maze.obstacles, key=lambda cell: cell[::-1]))
    ]:
        raise ValueError(f"its map {drawn} is not the maze of its question")
    shortest = maze.shortest()
    meta = {**maze.meta(), "published_answer": str(row["action_seq"]), "level": len(shortest or "")}
    return Problem(index_id(index, question), task, question, shortest, meta)
