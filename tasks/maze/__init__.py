"""Maze: walk to the goal between obstacles that move up and down while you walk.

Data: https://github.com/KotoHanon/VERL-Maze (notes on training small models in a dynamic maze, in Chinese).

    question   The agent is at (0, 0). The goal is at (1, 2). Obstacles are located at (3, 1), (0, 2).
    right      RDD, or any other sequence that ends on the goal and breaks no rule
    wrong      DDR         (the second obstacle comes up to meet the agent)

>>> meta = {"width": 4, "height": 4, "goal": [1, 2], "obstacles": [[3, 1], [0, 2]]}
>>> [TASK.verify(answer, "RDD", meta) for answer in ("RDD", "DDR")]
['correct', 'wrong']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tasks.maze import published_rules
from tasks.maze.rules import MOST_MOVES, SUCCESS, Maze, read_moves
from tasks.task import Grader, Task

PUBLISHED = "published-rules"


class MazeTask(Task):
    """The answer is a sequence of the moves R, L, U and D.

    Graders: by default the stated rules; `published-rules`, the published verifier, which is another game, in which
    letters that are no move pass a turn.
    """

    answer_format = "tagged"
    version = 2
    graders: ClassVar[Mapping[str, Grader]] = {PUBLISHED: Grader()}

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "") -> str:
        """Judge a sequence by walking it. See Task.verify."""
        try:
            maze = Maze.from_meta(meta)
        except (KeyError, TypeError, ValueError):
            return "ungradable"
        any_letters = grader == PUBLISHED and answer.isalpha() and len(answer) <= MOST_MOVES
        moves = answer if any_letters else read_moves(answer)
        if moves is None:
            return "format_error"
        right = published_rules.accepts(maze, moves) if grader == PUBLISHED else maze.walk(moves)[0] == SUCCESS
        return "correct" if right else "wrong"

    def canonical_answer(self, answer: str) -> str:
        """The moves alone. See Task.canonical_answer."""
        return read_moves(answer) or super().canonical_answer(answer)


TASK = MazeTask("maze")
