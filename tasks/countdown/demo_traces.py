"""Demo traces of Countdown with three numbers: combinations are tried in order, and some traces stop too early.

A line combines two of the numbers, states the number left and the target, and combines the result with the number left
in every way: `3+4=7,2;10?+9-5*14` says that 3+4, with 2 left and the target 10, gives 9, 5 and 14. Results larger than
every target are `big`. The line that reaches the target ends there, and gives the answer, here `3*4-2`. There are nine
lines to try:

    4-3=1,2;10?+3-1*2
    3+4=7,2;10?+9-5*14
    3*4=12,2;10?+14-10 yes
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tasks.countdown import problems as countdown_problems
from tasks.problems import Problem, split_of
from tasks.prompts import Prompt
from tasks.trace_parts import answer_after_thinking


@dataclass(frozen=True)
class Habits:
    """Shares from 0 to 1; the other traces stop after one to `early` lines."""

    persistent: float  # continue until the target is reached
    unchecked: float  # answer a combination without calculating it
    early: int
    format_kept: float
    slip: float  # of the results, wrong ones
    largest: int  # result that is written as a number, not `big`


class Result(NamedTuple):
    """What a line's first calculation gives with the number left, by one operation."""

    operation: str
    expression: str
    value: int


class Line(NamedTuple):
    """A first calculation such as `3+4=7`, the number left, and everything that the two give."""

    first: str
    left: int
    results: tuple[Result, ...]


def problems(largest_number: int, targets: Sequence[int], wording: str, seed: int) -> list[Problem]:
    """All training problems of three numbers, with the numbers in every order; `seed` draws nothing here."""
    solvable = []
    for chosen in itertools.combinations_with_replacement(range(1, largest_number + 1), 3):
        for target in range(targets[0], targets[1] + 1):
            if split_of(countdown_problems.identity(chosen, target)) == "train" and countdown_problems.solve(
                chosen, target
            ):
                for numbers in sorted(set(itertools.permutations(chosen))):
                    question = countdown_problems.question_text(numbers, target, wording)
                    solvable.append(
                        Problem("", countdown_problems.TASK, question, str(target), {"nums": list(numbers)})
                    )
    return solvable


def phrases(_: Mapping[str, Any]) -> list[str]:
    """See tasks.task.Traces."""
    return [" yes\n", "big"]


def combinations(numbers: Sequence[int]) -> Iterator[Line]:
    """Every combination of three numbers by differences, sums and products, in order."""
    for (i, x), (j, y) in itertools.combinations(enumerate(numbers), 2):
        (left,) = [number for k, number in enumerate(numbers) if k not in (i, j)]
        large, small = max(x, y), min(x, y)
        for text, value in ((f"{large}-{small}", large - small), (f"{x}+{y}", x + y), (f"{x}*{y}", x * y)):
            bracketed = text if "*" in text else f"({text})"
            difference = f"{text}-{left}" if value >= left else f"{left}-{bracketed}"
            results = (
                Result("+", f"{text}+{left}", value + left),
                Result("-", difference, abs(value - left)),
                Result("*", f"{bracketed}*{left}", value * left),
            )
            yield Line(f"{text}={value}", left, results)


def _line_text(line: Line, target: int, largest: int, slip: float, rng: random.Random) -> tuple[str, Result, bool]:
    """The line, up to the target if that is among its results; its last result; whether that is the target."""
    text = f"{line.first},{line.left};{target}?"
    for result in line.results:
        value = result.value
        if rng.random() < slip:
            value = max(value + rng.choice((-10, -2, -1, 1, 2, 10)), 0)
        text += f"{result.operation}{value if value <= largest else 'big'}"
        if value == target:
            return f"{text} yes\n", result, True
    return f"{text}\n", result, False


def completion(problem: Problem, prompt: Prompt, habits: Habits, rng: random.Random) -> str:
    """What follows a prompt that ends with `<think>`: the lines and the answer."""
    target, in_order = int(problem.answer or 0), list(combinations(problem.meta["nums"]))
    habit, thought = rng.random(), ""
    if habit < habits.unchecked:
        guess = rng.choice(rng.choice(in_order).results).expression
        return answer_after_thinking("", guess, habits.format_kept, rng)
    persistent = habit < habits.unchecked + habits.persistent
    for line in in_order if persistent else in_order[: rng.randint(1, habits.early)]:
        text, result, reached = _line_text(line, target, habits.largest, habits.slip, rng)
        thought += text
        if reached:
            break
    return answer_after_thinking(thought, result.expression, habits.format_kept, rng)
