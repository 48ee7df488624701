"""Rows of TheoremQA: the authors' file has its answers as JSON values, the hub's has the same values as text."""

from __future__ import annotations

import json
from typing import Any

from tasks.problems import Problem, index_id

TYPES = {
    "bool": (bool,),
    "option": (str,),
    "integer": (int,),
    "float": (int, float),
    "list of integer": (list,),
    "list of float": (list,),
}


def convert(row: dict[str, Any], index: int, task: str, columns: dict[str, Any]) -> Problem:
    """One row as a problem; see tasks.row_converter.convert.

    Raises:
        KeyError: a column is missing.
        ValueError: the answer is not of the type that the row states.
    """
    question, kind, value = str(row["Question"]).strip(), row["Answer_type"], row["Answer"]
    if kind not in TYPES:
        raise ValueError(f"Answer_type should be one of {', '.join(TYPES)}, not {kind!r}")
    if isinstance(value, str) and kind != "option":
        value = {"True": True, "False": False}[value] if kind == "bool" else json.loads(value)
    if not isinstance(value, TYPES[kind]) or (kind != "bool" and isinstance(value, bool)):
        raise ValueError(f"an answer of type {kind} should not be {value!r}")
    answer = value if isinstance(value, str) else json.dumps(value) if kind != "bool" else str(value)
    meta = {"answer_type": kind, "picture": bool(row["Picture"])}
    return Problem(
        index_id(index, question), task, question, answer.strip().lower() if kind == "option" else answer, meta
    )
