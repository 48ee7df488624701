"""Grade completions: extract, let the task decide, and judge what it leaves open in processes that can be killed."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from grading import extraction
from grading.worker_pool import POOL, Pair
from system.errors import UserError
from tasks import registry, task_yaml
from tasks.task import Grader, Task

DEADLINE_S = 5.0  # seconds of a judge's CPU time for one pair; math-verify's 95th percentile on 519 hard pairs is 0.23
VERSION = 1  # raise it with a change of grading/ that changes verdicts: stored samples are then graded again
GRADERS = {name: grader for task in task_yaml.task_names() for name, grader in registry.get(task).graders.items()}
DEFAULT = next(iter(GRADERS))  # the first that a task names


@dataclass(frozen=True)
class Item:
    """A completion to be graded.

    `extraction` is the rule for an answer that is not boxed (grading.extraction.RULES); `meta` is the problem's (or its
    JSON): what the verifier needs besides the gold answer.
    """

    task: str
    gold: str
    completion: str
    finish_reason: str | None = None
    meta: Mapping[str, Any] | str | None = None
    extraction: str = "none"


@dataclass(frozen=True)
class Grade:
    """The extracted answer (None if there is none), one of contracts.tables.VERDICTS, and the grader with version."""

    answer: str | None
    verdict: str
    grader: str


def version(task: str) -> str:
    """The version of our own code that decides a task's verdicts: this folder's and the task's."""
    return f"{VERSION}.{registry.get(task).version}"


@cache
def grader_name(task: str, grader: str) -> str:
    """What decides a task's answers: the grader or the task's own verifier, with its package's version and our own."""
    own = "" if version(task) == "1.1" else f", version {version(task)}"
    if grader not in registry.get(task).graders:
        return f"{task} verifier{_package(registry.get(task).own_grader)}{own}"
    return f"{grader}{_package(GRADERS[grader])}{own}"


def _package(grader: Grader) -> str:
    """The package that a grader needs, with its version; UserError if this environment does not have it."""
    if grader.package is None:
        return ""
    try:
        return f" ({grader.package} {importlib.metadata.version(grader.package)})"
    except importlib.metadata.PackageNotFoundError:
        raise UserError(
            f"these answers are judged with the package {grader.package}, which this environment does not have: use "
            "the environment of evaluation, or install it"
        ) from None


def _extract(item: Item, task: Task, meta: Mapping[str, Any], grader: Grader) -> extraction.Extraction:
    """The item's answer; none where a truncated completion ends before the answer's end."""
    if item.extraction not in extraction.RULES:
        raise UserError(f"extraction should be one of {', '.join(extraction.RULES)}, not {item.extraction!r}")
    if task.answer_format == "tagged":
        return extraction.extract_tagged(item.completion or "")
    rule = grader.extraction or item.extraction
    found = extraction.extract(item.completion or "", rule, several=task.is_multi_answer(item.gold, meta))
    cut = item.finish_reason == "length" and not found.complete
    return found._replace(answer=None) if cut else found


def _verdict_without_answer(found: extraction.Extraction, finish_reason: str | None) -> str:
    if finish_reason == "length":
        return "truncated"
    return "format_error" if found.broken_tags else "no_answer"


def grade(
    items: Sequence[Item], *, deadline_s: float = DEADLINE_S, workers: int | None = None, grader: str = DEFAULT
) -> list[Grade]:
    """Grade completions.

    Args:
        items: completions with their gold answers.
        deadline_s: seconds of a judge's CPU time for one (gold, answer) pair; past it the pair is `ungradable`.
        workers: processes for pairs that need a judge; as many as CPU cores by default. They stay for later calls.
        grader: one of GRADERS. A task that does not name it uses its own verifier.

    Returns:
        One grade per item, in order.

    Raises:
        UserError: the grader, a task or an extraction rule does not exist.
    """
    if grader not in GRADERS:
        raise UserError(f"grader should be one of {', '.join(GRADERS)}, not {grader!r}; choose one of them")
    answers: list[str | None] = []
    verdicts: list[str | None] = []
    undecided: dict[str, dict[Pair, list[int]]] = {}  # by judge: equal pairs are judged once
    for index, item in enumerate(items):
        task = registry.get(item.task)
        chosen = task.graders.get(grader, task.own_grader)
        meta = (json.loads(item.meta) if isinstance(item.meta, str) else item.meta) or {}
        found = _extract(item, task, meta, chosen)
        if found.answer is None:
            verdict: str | None = _verdict_without_answer(found, item.finish_reason)
        else:
            verdict = task.verify(found.answer, item.gold or "", meta, grader=grader)
            if verdict is None and chosen.judge:
                needed = {key: meta[key] for key in sorted(task.judged_meta) if meta.get(key) is not None}
                pair = Pair(item.gold, found.answer, json.dumps(needed) if needed else None)
                undecided.setdefault(chosen.judge, {}).setdefault(pair, []).append(index)
        answers.append(found.answer)
        verdicts.append(verdict)
    for judge, places in undecided.items():
        # Long answers first: they take longest, and no worker should find one when the others have finished
        pairs = sorted(places, key=lambda pair: -len(pair.gold) - len(pair.answer))
        for pair, verdict in zip(pairs, POOL.run(judge, pairs, deadline_s=deadline_s, workers=workers), strict=True):
            for index in places[pair]:
                verdicts[index] = verdict
    return [
        Grade(answer, verdict or "ungradable", grader_name(item.task, grader))
        for item, answer, verdict in zip(items, answers, verdicts, strict=True)
    ]
