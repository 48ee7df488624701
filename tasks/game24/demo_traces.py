"""Demo traces of 24 points: attempts, each of an operation less than cards, until one makes 24; some find no end.

15+2=17 left 3 17
17*3=51 left 51
again
15-3=12 left 2 12
12*2=24 left 24
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tasks.game24 import solver
from tasks.game24.solver import TARGET, Operation
from tasks.problems import Problem
from tasks.prompts import Prompt
from tasks.trace_parts import with_slips

AGAIN = "again"


@dataclass(frozen=True)
class Habits:
    """Shares from 0 to 1."""

    guided: float  # of the attempts, those that follow a solution
    stops: float  # of the failed attempts, those whose expression is given as the answer
    attempts: int  # at most; then the trace ends without an answer
    slip: float  # of the lines, with a wrong result


def phrases(_: Mapping[str, Any]) -> list[str]:
    """See tasks.task.Traces."""
    return [" left", f"{AGAIN}\n"]


def operation_line(operation: Operation) -> str:
    """One line of a trace, without its end."""
    left = " ".join(map(str, operation.left))
    return f"{operation.a}{operation.sign}{operation.b}={operation.result} left {left}"


def _random_attempt(cards: Sequence[int], rng: random.Random) -> list[Operation]:
    numbers, chosen = tuple(sorted(map(Fraction, cards))), list[Operation]()
    while len(numbers) > 1:
        possible = [operation for operation in solver.operations(numbers, whole=True) if operation.result < 100]
        chosen.append(rng.choice(possible or list(solver.operations(numbers, whole=True))))
        numbers = chosen[-1].left
    return chosen


def _with_wrong_result(text: str, rng: random.Random) -> str:
    before, _, after = text.partition("=")
    result, _, left = after.partition(" ")
    return f"{before}={int(Fraction(result)) + rng.choice((1, 2, 10))} {left}"


def completion(problem: Problem, prompt: Prompt, habits: Habits, rng: random.Random) -> str:
    """What follows the prompt: attempts and, unless none of them ends it, the answer."""
    cards, text = problem.meta["cards"], ""
    solution = solver.solve(cards, whole=True)
    for attempt in range(habits.attempts):
        guided = solution is not None and rng.random() < habits.guided
        chosen = list(solution) if guided and solution is not None else _random_attempt(cards, rng)
        text += f"{AGAIN}\n" if attempt else ""
        text += with_slips(map(operation_line, chosen), lambda line: _with_wrong_result(line, rng), habits.slip, rng)
        if chosen[-1].result == TARGET or rng.random() < habits.stops:
            return f"{text}<answer>{solver.write_expression(cards, chosen).replace(' ', '')}</answer>"
    return text
