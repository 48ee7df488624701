"""Knights and Knaves: who tells the truth? Logic-RL's files, https://github.com/Unakar/Logic-RL (from K-and-K).

The answer is the list that the recipe asks for, one line a person: `(1) Zoey is a knight`. `meta.names` has the names
in that order and `meta.knights` whether each is a knight.
"""

from __future__ import annotations

from typing import Any

from tasks.problems import Problem, index_id


def convert(row: dict[str, Any], index: int, task: str, columns: dict[str, Any]) -> Problem:
    """One row as a problem; KeyError if a column is missing."""
    names = [str(name) for name in row["names"]]
    knights = [bool(knight) for knight in row["solution"]]
    answer = "\n".join(
        f"({place}) {name} is a {'knight' if knight else 'knave'}"
        for place, (name, knight) in enumerate(zip(names, knights, strict=True), start=1)
    )
    question = str(row["quiz"]).strip()
    meta = {"names": names, "knights": knights, "people": len(names)}
    return Problem(index_id(index, question), task, question, answer, meta)
