"""A problem of a training set or benchmark, the table of problems, hashes of sets, and the split of generated ones."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from contracts.tables import PROBLEM

SPLITS = ("train", "test")
HELD_OUT_SHARE = 0.2  # of the problems that can be generated


class Problem(NamedTuple):
    """A row of the PROBLEM table as Python values."""

    problem_id: str
    task: str
    question: str
    answer: str | None  # None where the source has no usable gold answer
    meta: dict[str, Any]  # what the verifier needs besides the answer; level and the like
    cluster: str | None = None  # what it shares with other problems, so that they are one observation


def split_of(identity: str) -> str:
    """The split of a generated problem, by a hash of what it asks whatever the wording: so splits share no problem."""
    share = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "big") / 2**64
    return "test" if share < HELD_OUT_SHARE else "train"


def index_id(index: int, question: str) -> str:
    """The id of a problem whose source has none: its place in the file and eight digits of its text's hash."""
    return f"{index}-{hashlib.sha256(canonical(question).encode()).hexdigest()[:8]}"


def generated_id(prefix: str, question: str) -> str:
    """The id of a generated problem: what it is of and twelve digits of its text's hash."""
    return f"{prefix}-{hashlib.sha256(question.encode()).hexdigest()[:12]}"


def canonical(text: str) -> str:
    """The text with every run of white space as one space: files of the same set differ in white space."""
    return " ".join(text.split())


def rows_digest(rows: Iterable[Sequence[object]]) -> str:
    """Hash of rows in any order: sha256 over the sorted hex sha256 of each row's JSON list.

    The same formula as the public digests of MATH's (problem, solution) pairs, so that they can be compared.
    """
    digests = sorted(hashlib.sha256(json.dumps(list(row), default=str).encode()).hexdigest() for row in rows)
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def content_digest(problems: Iterable[Problem]) -> str:
    """Hash over the (question, gold answer) pairs, white space normalised: the same for a set from hub and mirror."""
    return rows_digest((canonical(p.question), p.answer or "") for p in problems)


def repeated_questions(problems: Iterable[Problem]) -> list[list[str]]:
    """Groups of problem ids that ask the same question, in the order of the file."""
    groups: dict[str, list[str]] = {}
    for problem in problems:
        groups.setdefault(canonical(problem.question), []).append(problem.problem_id)
    return [ids for ids in groups.values() if len(ids) > 1]


def with_same_beginning(problems: Sequence[Problem], characters: int) -> list[Problem]:
    """The problems, with a cluster where questions begin alike: parts of one exercise, or cases of one template.

    Args:
        problems: of one set.
        characters: of the beginning, white space normalised.
    """
    beginnings = [canonical(problem.question)[:characters] for problem in problems]
    counts = Counter(beginnings)
    return [
        problem._replace(cluster=start) if counts[start] > 1 else problem
        for problem, start in zip(problems, beginnings, strict=True)
    ]


def to_table(problems: Sequence[Problem]) -> pa.Table:
    """The problems as a PROBLEM table; the question is the only message."""
    return pa.Table.from_pydict(
        {
            "problem_id": [p.problem_id for p in problems],
            "task": [p.task for p in problems],
            "messages": [[{"role": "user", "content": p.question}] for p in problems],
            "answer": [p.answer for p in problems],
            "meta": [json.dumps(p.meta, ensure_ascii=False, sort_keys=True) for p in problems],
            "cluster": [p.cluster for p in problems],
        },
        schema=PROBLEM,
    )
