"""Check the reasoning of 24 points: every operation's numbers are available, its result and what is left are right."""

from __future__ import annotations

from typing import Any

from tasks.arithmetic_steps import Operations
from tasks.problems import Problem
from tasks.reasoning_steps import Step, judged_step, numbered_lines

RIGHT_HABITS: dict[str, Any] = {"slip": 0.0, "guided": 0.3, "stops": 0.0}  # traces without a fault


def check(completion: str, problem: Problem) -> list[Step] | None:
    """The steps of a completion; see Task.check_steps."""
    try:
        reached = Operations([int(card) for card in problem.meta["cards"]])
    except (KeyError, TypeError, ValueError):
        return None
    return [judged_step(number, text, reached.check(text)) for number, text in numbered_lines(completion)]
