"""Whether generations can be of the benchmark that was named, where its problems are not given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval import benchmark as benchmarks
from eval.importers.problem_matching import count_matched
from system.errors import UserError
from tasks import dataset_specs
from tasks.gold_answers import after_hash_marks, integer

ODD = 0.5  # share of golds that may be written in another way than the benchmark's


def _fits(gold: str, form: str) -> bool:
    """Whether a gold answer is written as a benchmark's whose `form` (tasks/gold_answers.py) is a number."""
    if form == "after_hash_marks":
        return after_hash_marks(f"#### {gold}") is not None
    return form not in ("integer", "boxed_integer") or re.fullmatch(r"-?\d{1,99}", integer(gold) or "") is not None


def check_fit(rows: Sequence[dict[str, Any]], benchmark: str, tables: Sequence[Path]) -> str:
    """Refuse generations that cannot be of this benchmark: by their number, their golds, and their questions.

    Args:
        rows: as eval.importers.formats gives them.
        benchmark: its name.
        tables: where its problem table may be; the first that exists is compared with the questions.

    Returns:
        What was compared, for the user.

    Raises:
        UserError: there are more problems than the benchmark has, its golds are numbers and these are not, or no
            question is one of its questions.
    """
    spec = dataset_specs.find(benchmark).spec
    advice = f"check --benchmark and --input, or give the problems of {benchmark} with --problems"
    names = {row["problem_id"] for row in rows}
    if "files" in spec and len(names) > spec["rows"]:
        raise UserError(
            f"{benchmark} has {spec['rows']} problems, but the generations are of {len(names)}; {advice}",
            code="other-benchmark",
            problems=len(names),
        )
    form = str(spec.get("columns", {}).get("form"))
    odd = [str(row["gold"]) for row in rows if not _fits(str(row["gold"]), form)]
    if len(odd) > ODD * len(rows):
        raise UserError(
            f"the gold answers of {benchmark} are numbers, but {len(odd)} of the generations' {len(rows)} are not, "
            f"such as {odd[0][:60]!r}; {advice}",
            code="other-benchmark",
            odd=len(odd),
        )
    with_question = [row for row in rows if row.get("question") or row.get("prompt")]
    table = next((path for path in tables if path.is_file()), None)
    if table is None or not with_question:
        return f"Not compared with the questions of {benchmark}: give its problem table with --problems"
    count = count_matched(with_question, benchmarks.problems(table.parent, benchmark))
    if not count:
        raise UserError(
            f"no question of the generations is one of {benchmark}, whose problems are in {table}; {advice}",
            code="other-benchmark",
        )
    return f"{count} of {len(rows)} questions are in {table}: --problems {table} takes its ids and gold answers"
