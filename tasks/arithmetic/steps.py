"""Check the reasoning of arithmetic: each line is the one before with some operations carried out, in a right order.

A line may also be the whole expression again. First, Next, Finally and the like may stand before a line.
"""

from __future__ import annotations

import re
from typing import Any

from tasks.arithmetic.problems import OPERATIONS
from tasks.problems import Problem
from tasks.reasoning_steps import Step, judged_step, numbered_lines

RIGHT_HABITS: dict[str, Any] = {"right_order": 1.0, "look_back": 0.0, "slip": 0.0}  # traces without a fault
_LINE = re.compile(r"(?:(?:First|Next|Then|Finally), )?(-?\d{1,4}(?:[-+*]\d{1,4}){0,5})")
_TOKEN = re.compile(r"(?:(?<![\d])-)?\d+|[-+*]")

Tokens = tuple[str, ...]


def check(completion: str, problem: Problem) -> list[Step] | None:
    """The steps of a completion; see Task.check_steps."""
    whole = problem.meta.get("expression")
    if not isinstance(whole, str) or not _LINE.fullmatch(whole):
        return None
    steps, before = [], whole
    for number, text in numbered_lines(completion):
        if line := _LINE.fullmatch(text):
            repeated = line[1] in (whole, before)
            faults = [] if repeated or _follows(before, line[1]) else [f"{line[1]} does not follow from {before}"]
            before = line[1]
        steps.append(judged_step(number, text, faults if line else None))
    return steps


def _follows(before: str, after: str) -> bool:
    """Whether operations that may go first make the second expression of the first."""
    wanted = tuple(_TOKEN.findall(after))
    reached: set[Tokens] = {tuple(_TOKEN.findall(before))}
    while reached and len(next(iter(reached))) > len(wanted):
        reached = {shorter for tokens in reached for shorter in _one_step(tokens)}
    return wanted in reached


def _one_step(tokens: Tokens) -> list[Tokens]:
    """The expression after one operation, for each that may be carried out: it leaves the value as it is."""
    expressions = []
    for at in range(1, len(tokens), 2):
        sign, before, after = tokens[at], tokens[at - 2 : at - 1], tokens[at + 2 : at + 3]
        if sign == "*" or (before not in (("*",), ("-",)) and after != ("*",)):
            result = OPERATIONS[sign](int(tokens[at - 1]), int(tokens[at + 1]))
            expressions.append((*tokens[: at - 1], str(result), *tokens[at + 2 :]))
    return expressions
