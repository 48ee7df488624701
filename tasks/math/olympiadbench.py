"""OlympiadBench, https://github.com/OpenBMB/OlympiadBench: open-ended English mathematics without pictures.

The gold answer is a list with one string, which may hold several answers ("$69$,$84$"), with its unit and its error
tolerance in columns of their own. All of that stays in `meta`; the answer itself loses only its dollar signs.
"""

from __future__ import annotations

from typing import Any

from tasks.problems import Problem


def convert(row: dict[str, Any], index: int, task: str, columns: dict[str, Any]) -> Problem:
    """One row as a problem; KeyError if a column is missing."""
    golds = [str(gold) for gold in row["final_answer"] or ()]
    answer = ", ".join(gold.replace("$", "").strip().rstrip(".").strip() for gold in golds)
    context = str(row["context"] or "").strip()
    question = str(row["question"]).strip()
    meta = {
        "answer_type": row["answer_type"],
        "is_multiple_answer": bool(row["is_multiple_answer"]),
        "source_answer": golds,
        "subfield": row["subfield"],
        "tolerance": _tolerance(row["error"]),
        "unit": row["unit"] or None,
    }
    return Problem(str(row["id"]), task, f"{context}\n\n{question}" if context else question, answer or None, meta)


def _tolerance(error: str | None) -> float | list[float] | None:
    """Largest absolute difference that still counts as right; a list where each of several answers has its own."""
    parts = [float(part) for part in str(error or "").split(",") if part.strip()]
    return parts[0] if len(parts) == 1 else parts or None
