"""Random generators for rewards, seeded by what is judged, so that draws are the same on every machine."""

from __future__ import annotations

import json
import random
from collections import Counter

from tasks.problems import Problem

_judged: Counter[tuple[object, ...]] = Counter()  # how often this process has drawn for each


def problem_key(problem: Problem) -> str:
    """What identifies a problem in training, where rewards are given neither its id nor its question."""
    return json.dumps([problem.task, problem.answer, problem.meta], sort_keys=True, ensure_ascii=False)


def fixed_generator(*parts: object) -> random.Random:
    """The same draws for the same parts, at any time."""
    return random.Random(json.dumps(parts, ensure_ascii=False))


def fresh_generator(*parts: object) -> random.Random:
    """Other draws each time that this process asks for the same parts: the n-th time, the n-th draws."""
    _judged[parts] += 1
    return fixed_generator(*parts, _judged[parts])
