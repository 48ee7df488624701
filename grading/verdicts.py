"""The verdict on a completion: extract its answer, let the task decide, have a judge decide what is left open."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from grading import extraction
from grading.worker_pool import POOL, Pair
from system.errors import UserError
from system.unknown_names import unknown
from tasks import registry, task_yaml
from tasks.task import Grader, Task

DEADLINE_S = 5.0  # seconds of a judge's CPU time for one pair; math-verify's 95th percentile on 519 hard pairs is 0.23
VERSION = 4  # raise it with a change of grading/ that changes verdicts: stored samples are then graded again
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


def version(task: Task) -> str:
    """The version of our own code that decides a task's verdicts: this folder's and the task's."""
    return f"{VERSION}.{task.version}"


class TaskGrading(NamedTuple):
    """How the answers to one task are judged: resolved once for all of a call's items.

    Attributes:
        task: extracts, and decides what needs no judge.
        grader: judges what the task leaves open.
        name: the grader or the task's own verifier, with its package's version and our own.
    """

    task: Task
    grader: Grader
    name: str


def _resolve_task(task_name: str, grader: str) -> TaskGrading:
    task = registry.get(task_name)
    own_version = "" if version(task) == "1.1" else f", version {version(task)}"
    if grader in task.graders:
        return TaskGrading(task, task.graders[grader], f"{grader}{_package(task.graders[grader])}{own_version}")
    return TaskGrading(task, task.own_grader, f"{task_name} verifier{_package(task.own_grader)}{own_version}")


def _package(grader: Grader) -> str:
    """The package that a grader needs, with its version; UserError if this environment does not have it."""
    if grader.package is None:
        return ""
    try:
        return f" ({grader.package} {importlib.metadata.version(grader.package)})"
    except importlib.metadata.PackageNotFoundError:
        raise UserError(
            f"these answers are judged with the package {grader.package}, which this environment does not have: use "
            "the environment of evaluation, or install it",
            code="missing-package",
            package=grader.package,
        ) from None


def _extract(item: Item, task_grading: TaskGrading, meta: Mapping[str, Any]) -> extraction.Extraction:
    """The item's answer; none where a truncated completion ends before the answer's end."""
    if item.extraction not in extraction.RULES:
        raise unknown("extraction rule", item.extraction, extraction.RULES)
    if task_grading.task.answer_format == "tagged":
        return extraction.extract_tagged(item.completion or "")
    rule = task_grading.grader.extraction or item.extraction
    if task_grading.task.same_options:
        extracted = extraction.extract_letter(item.completion or "", rule)
    else:
        is_multi_answer = task_grading.task.is_multi_answer(item.gold, meta)
        extracted = extraction.extract(item.completion or "", rule, is_multi_answer=is_multi_answer)
    is_cut = item.finish_reason == "length" and not extracted.complete
    return extracted._replace(answer=None) if is_cut else extracted


def _verdict_without_answer(extracted: extraction.Extraction, finish_reason: str | None) -> str:
    if finish_reason == "length":
        return "truncated"
    return "format_error" if extracted.broken_tags else "no_answer"


def _verdict_or_pair(item: Item, task_grading: TaskGrading, grader: str) -> tuple[str | None, str | None, Pair | None]:
    """The answer and the verdict of one item, or in its place the pair that the grader's judge has to compare."""
    meta = (json.loads(item.meta) if isinstance(item.meta, str) else item.meta) or {}
    extracted = _extract(item, task_grading, meta)
    if extracted.answer is None:
        return None, _verdict_without_answer(extracted, item.finish_reason), None
    verdict = task_grading.task.verify(extracted.answer, item.gold or "", meta, grader=grader)
    if verdict is not None or not task_grading.grader.judge:
        return extracted.answer, verdict or "ungradable", None
    read_by_judge = {key: meta[key] for key in sorted(task_grading.task.judged_meta) if meta.get(key) is not None}
    pair = Pair(item.gold, extracted.answer, json.dumps(read_by_judge) if read_by_judge else None)
    return extracted.answer, None, pair


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
        raise unknown("grader", grader, GRADERS)
    by_task = {name: _resolve_task(name, grader) for name in dict.fromkeys(item.task for item in items)}
    grades: list[Grade] = []
    undecided: dict[str, dict[Pair, list[int]]] = {}  # by judge: equal pairs are judged once
    for index, item in enumerate(items):
        task_grading = by_task[item.task]
        answer, verdict, pair = _verdict_or_pair(item, task_grading, grader)
        if pair and task_grading.grader.judge:
            undecided.setdefault(task_grading.grader.judge, {}).setdefault(pair, []).append(index)
        grades.append(Grade(answer, verdict or "", task_grading.name))
    for judge, positions in undecided.items():
        # Long answers first: they take longest, and no worker should find one when the others have finished
        pairs = sorted(positions, key=lambda pair: -len(pair.gold) - len(pair.answer))
        for pair, verdict in zip(pairs, POOL.run(judge, pairs, deadline_s=deadline_s, workers=workers), strict=True):
            for index in positions[pair]:
                grades[index] = replace(grades[index], verdict=verdict)
    return grades
