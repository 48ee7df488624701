"""Countdown: reach a target with given numbers, each used exactly once.

Data: https://huggingface.co/datasets/Jiayi-Pan/Countdown-Tasks-3to4, as TinyZero trains on it.

    question   Using the numbers [44, 19, 35], create an equation that equals 98. …
    right      44 + 19 + 35, or any other expression of the three numbers with this value
    wrong      44 + 54     (a number that is not given)

>>> [TASK.verify(answer, "98", {"nums": [44, 19, 35]}) for answer in ("44 + 19 + 35", "44 + 54")]
['correct', 'wrong']
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasks.countdown import verifier
from tasks.task import Task


class Countdown(Task):
    """The answer is an expression."""

    answer_format = "tagged"

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "") -> str:
        """Judge an expression by its numbers and its value. See Task.verify."""
        try:
            numbers, target = [int(number) for number in meta["nums"]], verifier.read_target(gold)
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return "ungradable"
        return verifier.verify(answer, numbers, target)

    def level(self, meta: Mapping[str, Any]) -> str | None:
        """How many numbers are given."""
        return str(len(meta["nums"])) if "nums" in meta else None


TASK = Countdown("countdown")
