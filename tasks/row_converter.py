"""Make a problem of a raw row whose question and answer are columns: the converter of sets that name no other."""

from __future__ import annotations

from typing import Any

from tasks.gold_answers import FORMS
from tasks.problems import Problem, index_id


def convert(row: dict[str, Any], index: int, task: str, columns: dict[str, Any]) -> Problem:
    """One row as a problem.

    Args:
        row: one row of the source.
        index: its place in the source, from 0.
        task: the task's name.
        columns: names of the columns `question` and `answer`; `form`, how the answer is written there
            (tasks/gold_answers.py); where such columns exist `id`, and `meta` (a list, copied into the problem's meta).

    Raises:
        KeyError: a column is missing.
    """
    question = str(row[columns["question"]]).strip()
    value = row[columns["answer"]]
    answer = None if value is None else FORMS[columns.get("form", "as_written")](value)
    meta = {name: row[name] for name in columns.get("meta", ()) if row[name] is not None}
    if columns.get("form") in ("integer", "boxed_integer") and answer != str(value):
        meta["source_answer"] = str(value)
    problem_id = str(row[columns["id"]]) if "id" in columns else index_id(index, question)
    return Problem(problem_id, task, question, answer, meta)
