"""Rows of LeetCodeDataset: https://huggingface.co/datasets/newfacade/LeetCodeDataset, version 0.3.1.

A row is left out (it has no gold answer) if its tests are not plain values, such as those with linked lists, if there
are fewer than 32 of them, as the document asks, or if its code imports a package that Python does not have itself.
"""

from __future__ import annotations

from typing import Any

from tasks.problems import Problem
from tasks.programs.suite import read_asserts

LEAST_TESTS = 32
CPU_S, MEMORY = 30, 1 << 30  # for all tests of a program: its own solutions of two problems take over 5 s


def convert(row: dict[str, Any], index: int, task: str, columns: dict[str, Any]) -> Problem:
    """One row as a problem; see tasks.row_converter.convert."""
    tests = read_asserts(row["test"])
    question = f"{row['problem_description'].strip()}\n\nComplete this code:\n{row['starter_code'].rstrip()}"
    meta = {
        "function": row["entry_point"],
        "before": row["prompt"],
        "tests": tests or [],
        "level": row["difficulty"],
        "cpu_s": CPU_S,
        "memory": MEMORY,
    }
    usable = tests is not None and len(tests) >= LEAST_TESTS and "sortedcontainers" not in row["prompt"]
    return Problem(row["task_id"], task, question, row["completion"] if usable else None, meta)
