"""Demo traces of programs: the right function, or one of its known faults, or something that does not run."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.problems import Problem
from tasks.programs import problems as programs_problems
from tasks.prompts import Prompt
from tasks.trace_parts import tagged_answer


@dataclass(frozen=True)
class Habits:
    """Shares from 0 to 1; the other programs have one of the known faults, each equally often."""

    right: float
    broken: float  # the closing bracket or the end is missing
    format_kept: float


def strata(problem: Problem) -> str:
    """Every kind of function is equally frequent in traces."""
    return str(problem.meta["level"])


def phrases(_: Mapping[str, Any]) -> list[str]:
    """See tasks.task.Traces."""
    faults = [f"+{added}" for added, _ in programs_problems.FAULTS.values() if added != "1"]
    return ["def f(a, b): return ", " times a", " times b", "max(", "min(", "abs(", "*a", "*b", *faults]


def completion(problem: Problem, prompt: Prompt, habits: Habits, rng: random.Random) -> str:
    """What follows the prompt: the program alone."""
    habit, text = rng.random(), problem.answer or ""
    if habit < habits.broken:
        text = text[: text.index("return")]
    elif habit >= habits.broken + habits.right:
        text = rng.choice(list(problem.meta["faults"].values()))
    return tagged_answer("", text, habits.format_kept, rng)
