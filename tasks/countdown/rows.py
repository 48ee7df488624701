"""Rows of Countdown-Tasks-3to4, alone or in TinyZero's files (https://github.com/Jiayi-Pan/TinyZero).

The question is TinyZero's, without the recipe's instructions around it.
"""

from __future__ import annotations

from typing import Any

from tasks.countdown.problems import question_text
from tasks.problems import Problem, index_id


def convert(row: dict[str, Any], index: int, task: str, columns: dict[str, Any]) -> Problem:
    """One row as a problem; see tasks.row_converter.convert."""
    nums, target = [int(number) for number in row["nums"]], int(row["target"])
    text = question_text(nums, target)
    return Problem(index_id(index, text), task, text, str(target), {"nums": nums})
