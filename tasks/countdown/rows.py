"""Countdown: reach a target with given numbers. Rows of Countdown-Tasks-3to4, alone or in TinyZero's files.

The question is TinyZero's (https://github.com/Jiayi-Pan/TinyZero), without the recipe's instructions around it.
"""

from __future__ import annotations

from typing import Any

from tasks.countdown.problems import question
from tasks.problems import Problem, index_id


def convert(row: dict[str, Any], index: int, task: str, columns: dict[str, Any]) -> Problem:
    """One row as a problem whose answer is the target and whose `meta.nums` are the numbers; KeyError without them."""
    nums, target = [int(number) for number in row["nums"]], int(row["target"])
    text = question(nums, target)
    return Problem(index_id(index, text), task, text, str(target), {"nums": nums})
