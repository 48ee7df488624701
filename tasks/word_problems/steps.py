"""Check the reasoning of word problems: each calculation that a line states, such as 7 + 5 = 12, is right or wrong.

Whether a calculation is the one that the story asks for is not checked: the answer shows that.
"""

from __future__ import annotations

import re

from tasks import expressions
from tasks.problems import Problem
from tasks.reasoning_steps import Step, judged_step, numbered_lines

_NUMBER = r"\d{1,6}(?:\s+(?:more\s+)?[a-z]{3,12})?"  # 5, 5 apples
_EQUATION = re.compile(rf"({_NUMBER}(?:\s*[-+*×−]\s*{_NUMBER}){{1,5}})\s*=\s*(-?\d{{1,9}})(?!\d|\.\d)")
_WORD = re.compile(r"\s+(?:more\s+)?[a-z]+")


def check(completion: str, problem: Problem) -> list[Step] | None:
    """The steps of a completion; see Task.check_steps."""
    steps = []
    for number, text in numbered_lines(completion):
        equations = _EQUATION.findall(text)
        faults = [f"{left} is not {result}" for left, result in equations if not _holds(left, result)]
        steps.append(judged_step(number, text, faults if equations else None))
    return steps


def _holds(left: str, result: str) -> bool:
    try:
        value, _ = expressions.evaluate(_WORD.sub(" ", left))
    except expressions.Unparsable:
        return False
    return value == int(result)
