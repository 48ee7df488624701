"""Grade completions: extract, compare exactly, judge what is left once per (gold, answer) in killable workers."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from contracts.errors import UserError
from grading import extraction
from grading.worker_pool import POOL, Pair
from tasks.countdown import verifier as countdown
from tasks.knights_knaves import verifier as knights_knaves
from tasks.math import verifier as math_answers

DEADLINE_S = 5.0  # seconds of wall time for one pair; math-verify's 95th percentile on 519 hard pairs is 0.23
GRADERS = ("math-verify", "qwen-rules", "strict")
TOLERANCES = {"tolerance", "relative_tolerance"}  # in a problem's meta


@dataclass(frozen=True)
class Item:
    """A completion to be graded.

    `extraction` names the fallback used when nothing is boxed (grading.extraction.FALLBACKS); `meta` is the
    problem's (or its JSON): what the verifier needs besides the gold answer.
    """

    task: str
    gold: str
    completion: str
    finish_reason: str | None = None
    meta: dict[str, Any] | str | None = None
    extraction: str = "none"


@dataclass(frozen=True)
class Grade:
    """The extracted answer (None if there is none), one of contracts.tables.VERDICTS, and the grader with version."""

    answer: str | None
    verdict: str
    grader: str


@cache
def grader_name(grader: str) -> str:
    """The grader with the version that its verdicts depend on."""
    package = {"math-verify": "math-verify", "qwen-rules": "sympy"}.get(grader)
    return f"{grader} ({package} {importlib.metadata.version(package)})" if package else grader


def missing_verdict(found: extraction.Extraction, finish_reason: str | None) -> str:
    """Verdict of a completion without an answer to judge."""
    if finish_reason == "length":
        return "truncated"
    return "format_error" if found.broken_tags else "no_answer"


def _grade_math(item: Item, meta: dict[str, Any], grader: str) -> tuple[str | None, str | None]:
    """The answer and, where no judging is needed, the verdict."""
    if item.extraction not in extraction.FALLBACKS:
        raise UserError(
            f"extraction should be one of {', '.join(extraction.FALLBACKS)}, not {item.extraction!r}; mend the protocol"
        )
    several = bool(meta.get("is_multiple_answer"))
    fallback = "last-number" if grader == "qwen-rules" else item.extraction
    found = extraction.extract(item.completion or "", fallback, several=several)
    if found.answer is None or (item.finish_reason == "length" and not found.complete):
        return None, missing_verdict(found, item.finish_reason)
    if not (item.gold or "").strip():
        return found.answer, "ungradable"
    if grader == "strict":
        return found.answer, _right(math_answers.normalise(item.gold) == math_answers.normalise(found.answer))
    same = math_answers.compare_exactly(item.gold, found.answer)
    if same is None or (not same and (grader == "qwen-rules" or any(meta.get(key) is not None for key in TOLERANCES))):
        return found.answer, None
    return found.answer, _right(same)


def _right(same: bool) -> str:
    return "correct" if same else "wrong"


def _grade_tagged(item: Item, meta: dict[str, Any]) -> tuple[str | None, str | None]:
    """Countdown, and Knights and Knaves: the last complete answer tag after the thinking part, else the last box."""
    text = extraction.after_thinking(item.completion or "")
    answer = extraction.last_tag(text) or extraction.last_boxed(text)
    if answer is None:
        return None, "truncated" if item.finish_reason == "length" else "format_error"
    try:
        if item.task == "countdown":
            return answer, countdown.verify(answer, meta["nums"], Fraction(meta.get("target", item.gold)))
        return answer, knights_knaves.verify(answer, meta["names"], meta["knights"])
    except (KeyError, TypeError, ValueError):  # the verifiers raise on nothing that a model writes: the gold is bad
        return answer, "ungradable"


def grade(
    items: Sequence[Item], *, deadline_s: float = DEADLINE_S, workers: int | None = None, grader: str = "math-verify"
) -> list[Grade]:
    """Grade completions.

    Args:
        items: completions with their gold answers.
        deadline_s: seconds of wall time for one (gold, answer) pair; past it the pair is `ungradable`.
        workers: processes that judge; as many as CPU cores by default. They stay for later calls.
        grader: one of GRADERS: `math-verify`; `qwen-rules`, the rules of Qwen2.5-Math's harness; `strict`, the
            normalised string alone. Tasks that are not mathematics have one verifier, whatever the grader.

    Returns:
        One grade per item, in order.

    Raises:
        UserError: the grader, a task or an extraction rule does not exist.
    """
    if grader not in GRADERS:
        raise UserError(f"grader should be one of {', '.join(GRADERS)}, not {grader!r}; choose one of them")
    name = grader_name(grader)
    answers: list[str | None] = []
    verdicts: list[str | None] = []
    unjudged: dict[Pair, list[int]] = {}
    for index, item in enumerate(items):
        meta = json.loads(item.meta) if isinstance(item.meta, str) else item.meta
        meta = meta or {}
        tagged = item.task in ("countdown", "knights_knaves")
        answer, verdict = _grade_tagged(item, meta) if tagged else _grade_math(item, meta, grader)
        answers.append(answer)
        verdicts.append(verdict)
        if verdict is None and answer is not None:
            needed = {key: meta[key] for key in sorted(TOLERANCES | {"unit"}) if meta.get(key) is not None}
            pair = Pair(item.gold, answer, json.dumps(needed) if needed else None)
            unjudged.setdefault(pair, []).append(index)
    # Long answers first: they take longest, and no worker should find one when the others have finished
    pairs = sorted(unjudged, key=lambda pair: -len(pair.gold) - len(pair.answer))
    for pair, verdict in zip(
        pairs, POOL.judge(grader, pairs, deadline_s=deadline_s, workers=workers) if pairs else [], strict=True
    ):
        for index in unjudged[pair]:
            verdicts[index] = verdict
    return [Grade(answer, verdict or "ungradable", name) for answer, verdict in zip(answers, verdicts, strict=True)]
