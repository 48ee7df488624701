"""24 points: make 24 with four cards, each used exactly once, or say that there is no way.

    question   Make 24 with the cards 8, 3, 8, 3, each used exactly once, by +, -, *, / and brackets.
    right      8 / (3 - 8 / 3); where there is no solution, none
    wrong      3 * 8       (two cards are left)

>>> [TASK.verify(answer, "8 / (3 - 8 / 3)", {"cards": [8, 3, 8, 3]}) for answer in ("8 / (3 - 8 / 3)", "3 * 8")]
['correct', 'wrong']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.expressions import Unparsable, evaluate
from tasks.game24.problems import NONE
from tasks.game24.solver import TARGET
from tasks.task import Task

NO_SOLUTION = {NONE, "no solution", "impossible", "unsolvable"}


class Game24(Task):
    """The answer is an expression, or `none`."""

    answer_format = "tagged"

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "") -> str:
        """Judge an expression by its cards and its value, without evaluating it as code. See Task.verify."""
        try:
            cards = sorted(int(card) for card in meta["cards"])
        except (KeyError, TypeError, ValueError):
            return "ungradable"
        if not cards or not gold:
            return "ungradable"
        if answer.strip().lower().rstrip(".") in NO_SOLUTION:
            return "correct" if gold == NONE else "wrong"
        try:
            value, used = evaluate(answer.removesuffix(f"= {TARGET}").removesuffix(f"={TARGET}"))
        except Unparsable:
            return "format_error"
        return "correct" if value == TARGET and sorted(used) == cards else "wrong"


TASK = Game24("game24")
