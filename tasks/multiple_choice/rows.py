"""Rows with a question and its options, put into an order drawn from a seed where the source's order says something.

    columns: {question: question, options: options, answer: answer}                a list, and the right one's letter
    columns: {question: Q, options: [Wrong 1, Wrong 2], answer: Right, seed: 0}    a column for each

`meta` has the options as they are shown, `seed`, and `order`: their places in the source (of several columns, first the
right one's, then those of `options`). The order is drawn from the seed and the problem's id, so that it does not depend
on the order of the rows.
"""

from __future__ import annotations

import random
from typing import Any

from tasks.multiple_choice import LETTERS, question_text
from tasks.problems import Problem, index_id


def convert(row: dict[str, Any], index: int, task: str, columns: dict[str, Any]) -> Problem:
    """One row as a problem; see tasks.row_converter.convert.

    Args:
        row: one row of the source.
        index: its place in the source, from 0.
        task: the task's name.
        columns: `question`, `options` and `answer` as above; `seed` shuffles the options; `id` and `meta` as there.

    Raises:
        KeyError: a column is missing.
        ValueError: there are fewer than two options or more than letters, one is empty, or no option is the right one.
    """
    stem = str(row[columns["question"]]).strip()
    options, right = _options(row, columns)
    if not 2 <= len(options) <= len(LETTERS) or not all(options):
        raise ValueError(f"there should be 2 to {len(LETTERS)} options, none of them empty, but they are {options}")
    problem_id = str(row[columns["id"]]).strip() if "id" in columns else index_id(index, stem)
    order, seed = list(range(len(options))), columns.get("seed")
    if seed is not None:
        random.Random(f"{seed}/{problem_id}").shuffle(order)
    ordered = [options[position] for position in order]
    meta = {name: row[name] for name in columns.get("meta", ()) if row[name] is not None}
    meta |= {"options": ordered, "order": order, "seed": seed}
    return Problem(problem_id, task, question_text(stem, ordered), LETTERS[order.index(right)], meta)


def _options(row: dict[str, Any], columns: dict[str, Any]) -> tuple[list[str], int]:
    """The options in the source's order, and the place of the right one."""
    answer, named = str(row[columns["answer"]] or "").strip(), columns["options"]
    if not isinstance(named, str):
        return [answer, *(str(row[name] or "").strip() for name in named)], 0
    options = [str(option).strip() for option in row[named]]
    if len(answer) != 1 or answer not in LETTERS[: len(options)]:
        raise ValueError(f"the answer should be the letter of one of the {len(options)} options, not {answer!r}")
    return options, LETTERS.index(answer)
