"""Countdown: reach a target with given numbers. TinyZero's files, https://github.com/Jiayi-Pan/TinyZero.

The question is the file's own sentence, cut out of its prompt, without the recipe's instructions around it.
"""

from __future__ import annotations

from typing import Any

from recipes.tasks.problems import Problem, index_id


def convert(row: dict[str, Any], index: int, task: str, columns: dict[str, Any]) -> Problem:
    """One row as a problem whose answer is the target and whose `meta.nums` are the numbers.

    KeyError if a column or the sentence is missing.
    """
    prompt = str(row["prompt"][0]["content"])
    _, found, rest = prompt.partition("User:")
    question, ends, _ = rest.partition("Show your work")
    if not found or not ends:
        raise KeyError("prompt with `User: … Show your work`")
    nums = [int(number) for number in row["nums"]]
    return Problem(index_id(index, question), task, question.strip(), str(int(row["target"])), {"nums": nums})
