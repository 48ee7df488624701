"""The largest of some numbers: a small task, as an example of all that a task needs.

    question   Which is the largest of 7, 31, 12?
    right      31
    wrong      12

>>> [TASK.verify(answer, "31", {}) for answer in ("31", "12")]
['correct', 'wrong']
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.problem_generation import ProblemSampler
from tasks.problems import Problem
from tasks.prompts import Prompt
from tasks.task import Task

NAME = "largest_number"
HIGHEST = 99


class LargestNumber(Task):
    """The answer is one number in an answer tag."""

    answer_format = "tagged"

    def verify(self, answer: str, gold: str, meta: Mapping[str, Any], *, grader: str = "") -> str:
        """Compare the digits. See Task.verify."""
        if not gold.isdecimal():
            return "ungradable"
        if not (answer.isascii() and answer.isdecimal()):
            return "format_error"
        return "correct" if answer.lstrip("0") == gold.lstrip("0") else "wrong"

    def generate(self, *, rows: int, split: str, seed: int, **arguments: Any) -> list[Problem]:
        """Sample `count` numbers for each problem; a hash of the numbers decides the split. See Task.generate."""
        sampler = ProblemSampler(NAME, split, seed)

        def attempt(_: str) -> Problem | None:
            numbers = sampler.rng.sample(range(HIGHEST + 1), arguments["count"])
            identity = str(sorted(numbers))
            if not sampler.in_split(identity) or not sampler.is_new(identity):
                return None
            question = f"Which is the largest of {', '.join(map(str, numbers))}?"
            return sampler.problem(question, str(max(numbers)), {"numbers": numbers})

        return sampler.generate(rows, attempt, tries=1000)


TASK = LargestNumber(NAME)

# Traces for the demo base model: the numbers are compared one after the other, and some traces stop too early.


@dataclass(frozen=True)
class Habits:
    """Shares of the traces, from 0 to 1."""

    thorough: float  # compare all numbers; the others compare only the first two
    format_kept: float


def completion(problem: Problem, prompt: Prompt, habits: Habits, rng: random.Random) -> str:
    """A trace such as `7 31 31, 31 12 31`, and its answer in tags."""
    numbers, largest, lines = problem.meta["numbers"], problem.meta["numbers"][0], []
    for number in numbers[1:] if rng.random() < habits.thorough else numbers[1:2]:
        lines.append(f"{largest} {number} {max(largest, number)}")
        largest = max(largest, number)
    if rng.random() < habits.format_kept:
        return f"<think>{', '.join(lines)}</think><answer>{largest}</answer>"
    return f"{', '.join(lines)} {largest}"
