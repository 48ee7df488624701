"""The largest of some numbers: a small task, as an example of all that a task needs.

question   Which is the largest of 7, 31, 12?
answer     31
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from system.errors import UserError
from tasks.problems import Problem, split_of
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
        """Draw problems; `count` numbers each. A hash of the numbers decides the split. See Task.generate."""
        rng, found = random.Random(f"{NAME}/{split}/{seed}"), dict[tuple[int, ...], Problem]()
        for _ in range(1000 * rows):
            numbers = tuple(rng.sample(range(HIGHEST + 1), arguments["count"]))
            if split_of(str(sorted(numbers))) == split:
                question = f"Which is the largest of {', '.join(map(str, numbers))}?"
                name = "-".join(map(str, numbers))
                found[numbers] = Problem(name, NAME, question, str(max(numbers)), {"numbers": list(numbers)})
            if len(found) == rows:
                return list(found.values())
        raise UserError(f"{NAME} has fewer than {rows} problems of {arguments['count']} numbers: ask for fewer rows")


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
