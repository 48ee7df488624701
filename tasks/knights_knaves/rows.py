"""Rows of Logic-RL's Knights and Knaves files, https://github.com/Unakar/Logic-RL (from K-and-K).

The answer is the list that the recipe asks for. `meta.names` has the names in that order and `meta.knights` whether
each is a knight.
"""

from __future__ import annotations

from typing import Any

from tasks.knights_knaves.problems import answer_list
from tasks.problems import Problem, index_id


def convert(row: dict[str, Any], index: int, task: str, columns: dict[str, Any]) -> Problem:
    """One row as a problem; see tasks.row_converter.convert."""
    names = [str(name) for name in row["names"]]
    knights = [bool(knight) for knight in row["solution"]]
    question = str(row["quiz"]).strip()
    meta = {"names": names, "knights": knights, "people": len(names)}
    return Problem(index_id(index, question), task, question, answer_list(names, knights), meta)
