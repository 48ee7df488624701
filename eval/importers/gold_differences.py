"""How the golds of files made elsewhere differ from the benchmark's: other answers may mean other problems."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa

from eval.importers.formats import Row
from tasks import registry


def gold_differences(rows: Iterable[Row], problems: pa.Table) -> tuple[int, dict[str, tuple[str, str]]]:
    """How many problems' golds are the benchmark's in other words, and those that are other answers.

    Args:
        rows: with the problem_id and the file's own gold, `source_gold`; empty where the file has none.
        problems: the benchmark's (PROBLEM); those without an answer are not compared.

    Returns:
        The number of the former, and of the latter by problem_id: the file's gold and the benchmark's.
    """
    by_id = {problem["problem_id"]: problem for problem in problems.to_pylist()}
    written, other = 0, dict[str, tuple[str, str]]()
    for problem_id, gold in dict.fromkeys((row["problem_id"], str(row["source_gold"] or "")) for row in rows):
        problem = by_id[problem_id]
        if not gold or not problem["answer"] or gold == problem["answer"]:
            continue
        meta = json.loads(problem["meta"] or "{}")
        if registry.get(problem["task"]).verify(gold, problem["answer"], meta) == "wrong":
            other[problem_id] = (gold, problem["answer"])
        else:
            written += 1
    return written, other


def other_golds_text(other: dict[str, tuple[str, str]]) -> str:
    """Such as: 2 golds are other answers, such as '3' for '4' of gsm8k/7."""
    example, (theirs, ours) = next(iter(other.items()))
    return f"{len(other)} golds are other answers, such as {theirs[:60]!r} for {ours[:60]!r} of {example}"
