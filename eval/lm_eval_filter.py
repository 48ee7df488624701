"""Judging as lm-eval sees it: a filter that grades all completions of a task at once, and metrics that read verdicts.

Only a filter sees a task's completions together, so that grading can be spread over processes and equal answers be
judged once. What it puts in place of each completion is its grade, which `process_results` then only reads.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from lm_eval.api.filter import Filter
from lm_eval.api.registry import register_filter

Graded = dict[str, Any]  # answer, verdict, grader, finish_reason
METRICS = {"accuracy": "correct", "truncated": "truncated", "ungradable": "ungradable"}


@register_filter("crosszero-judge")
class Judge(Filter):
    """Completions to grades.

    A document says which grader, and which fallback for finding the answer, it wants (eval.benchmark.documents); a
    completion that comes from one of our models carries its finish reason.
    """

    def apply(self, resps: Iterable[list[str]], docs: list[dict[str, Any]]) -> list[list[Graded]]:
        """Grade every response of every document."""
        from grading import Item, grade

        responses = list(resps)
        items = [
            Item(
                task=doc["task"],
                gold=doc["answer"],
                completion=str(completion),
                finish_reason=getattr(completion, "finish_reason", None),
                meta=doc["meta"],
                extraction=doc["fallback"],
            )
            for doc, completions in zip(docs, responses, strict=True)
            for completion in completions
        ]
        # One task is judged by one grader: all its documents are of the same metadata.
        chosen = {"grader": docs[0]["grader"]} if docs[0]["grader"] else {}
        grades = grade(items, **chosen)
        graded = iter(
            dataclasses.asdict(given) | {"finish_reason": item.finish_reason}
            for item, given in zip(items, grades, strict=True)
        )
        return [[next(graded) for _ in completions] for completions in responses]


def process_results(doc: dict[str, Any], results: list[list[Graded]]) -> dict[str, float]:
    """A problem's metrics: the shares of its completions that are correct, truncated, and could not be judged.

    Where it is not known how a completion ended, the share of truncated ones is NaN, and so is lm-eval's mean.
    """
    verdicts = [graded["verdict"] for graded in results[0]]
    shares = {metric: verdicts.count(verdict) / len(verdicts) for metric, verdict in METRICS.items()}
    unknown = any(graded["finish_reason"] is None for graded in results[0])
    return shares | ({"truncated": math.nan} if unknown else {})
