"""Check the reasoning of Countdown: the lines of tasks/countdown/demo_traces.py, and lines with one operation."""

from __future__ import annotations

import operator
import re
from typing import Any

from tasks.arithmetic_steps import Operations
from tasks.problems import Problem
from tasks.reasoning_steps import Step, judged_step, numbered_lines

RIGHT_HABITS: dict[str, Any] = {"slip": 0.0, "persistent": 1.0, "unchecked": 0.0}  # traces without a fault
_LINE = re.compile(r"(\d{1,4})([-+*])(\d{1,4})=(\d{1,6}),(\d{1,4});(\d{1,6})\?((?:[-+*](?:\d{1,6}|big))*)( yes| no)?")
_CALCULATE = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def check(completion: str, problem: Problem) -> list[Step] | None:
    """The steps of a completion; see Task.check_steps."""
    try:
        numbers, target = sorted(int(number) for number in problem.meta["nums"]), int(problem.answer or "")
    except (KeyError, TypeError, ValueError):
        return None
    reached = Operations(numbers)

    def faults(text: str) -> list[str] | None:
        line = _LINE.fullmatch(text)
        return _combination_faults(line, numbers, target) if line else reached.check(text)

    return [judged_step(number, text, faults(text)) for number, text in numbered_lines(completion)]


def _combination_faults(line: re.Match[str], numbers: list[int], target: int) -> list[str]:
    """Faults of a line that combines two numbers, and their result with the one that is left."""
    a, b, result, left = int(line[1]), int(line[3]), int(line[4]), int(line[5])
    faults = [] if sorted([a, b, left]) == numbers else [f"{a}, {b} and {left} are not the given numbers"]
    if _CALCULATE[line[2]](a, b) != result:
        faults.append(f"{a}{line[2]}{b} is {_CALCULATE[line[2]](a, b)}, not {result}")
    if int(line[6]) != target:
        faults.append(f"the target is {target}, not {line[6]}")
    last = None
    for sign, stated in re.findall(r"([-+*])(\d+|big)", line[7]):
        last = abs(_CALCULATE[sign](result, left))
        if (last <= target) if stated == "big" else (int(stated) != last):
            faults.append(f"{result} and {left} give {last} by {sign}, not {stated}")
    if line[8] and (line[8] == " yes") != (last == target):
        faults.append(f"{last} is {'' if last == target else 'not '}the target")
    return faults
