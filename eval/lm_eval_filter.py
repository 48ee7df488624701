"""Grading inside lm-eval: a filter that puts a grade in place of each completion, and metrics that read the verdicts.

A filter, because only a filter sees all completions of a task together: grading is spread over processes, and equal
answers are judged once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from lm_eval.api.filter import Filter
from lm_eval.api.registry import register_filter

from eval.grade import grade_benchmark

Graded = dict[str, Any]  # answer, verdict, grader, finish_reason
METRICS = {"accuracy": "correct", "truncated": "truncated", "ungradable": "ungradable"}


@register_filter("crosszero-grade")
class GradeFilter(Filter):
    """Completions in, grades out, by the function that grades stored samples.

    Each document names the grader and the extraction rule, the same for the whole task (eval.benchmark.documents). Our
    models' completions carry their finish reason; for others it is unknown.
    """

    def apply(self, resps: Iterable[list[str]], docs: list[dict[str, Any]]) -> list[list[Graded]]:
        """Grade every response of every document."""
        responses = list(resps)
        rows = [
            {
                "problem_id": doc["problem_id"],
                "completion": str(completion),
                "finish_reason": getattr(completion, "finish_reason", None),
            }
            for doc, completions in zip(docs, responses, strict=True)
            for completion in completions
        ]
        problems = {doc["problem_id"]: doc for doc in docs}
        grades = grade_benchmark(rows, problems, extraction=docs[0]["extraction"], grader=docs[0]["grader"])
        graded = iter(
            dataclasses.asdict(grade_of_row) | {"finish_reason": row["finish_reason"]}
            for row, grade_of_row in zip(rows, grades, strict=True)
        )
        return [[next(graded) for _ in completions] for completions in responses]


def process_results(doc: dict[str, Any], results: list[list[Graded]]) -> dict[str, float]:
    """A problem's metrics: the shares of its completions that are correct, truncated and ungradable.

    Where a finish reason is unknown, the truncated share is NaN, and so is lm-eval's mean over problems.
    """
    verdicts = [graded["verdict"] for graded in results[0]]
    shares = {metric: verdicts.count(verdict) / len(verdicts) for metric, verdict in METRICS.items()}
    unknown = any(graded["finish_reason"] is None for graded in results[0])
    return shares | ({"truncated": math.nan} if unknown else {})
