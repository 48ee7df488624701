"""Demo traces of arithmetic: left to right (always wrong in this task), the right order, or one after the other.

A trace rewrites what is left to calculate, one line for each step, plainly or with the words First, Next, Finally:

    5+3*4-2
    5+12-2
    17-2
    15
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tasks.arithmetic import problems as arithmetic
from tasks.problems import Problem
from tasks.prompts import Prompt

LOOK_BACK = "Wait, check again: multiplication goes first."


@dataclass(frozen=True)
class Habits:
    """Shares from 0 to 1; the other traces calculate from left to right."""

    right_order: float
    look_back: float  # left to right first, then, after a look back, the right order
    in_words: float  # of the traces, with First, Next, Finally
    format_kept: float
    slip: float  # of the steps, a wrong result


def strata(problem: Problem) -> tuple[str, int]:
    """Every kind and level is equally frequent in traces."""
    return problem.meta["kind"], problem.meta["level"]


def _rewritten_lines(
    expression: arithmetic.Expression, multiplication_first: bool, slip: float, rng: random.Random
) -> list[str]:
    """What is left to calculate after each step, from the whole expression to the answer."""
    numbers, operations = list(expression.numbers), list(expression.operations)
    lines = [str(expression)]
    while operations:
        at = operations.index("*") if multiplication_first and "*" in operations else 0
        result = arithmetic.OPERATIONS[operations.pop(at)](numbers[at], numbers[at + 1])
        if rng.random() < slip:
            result += rng.choice((-10, -2, -1, 1, 2, 10))
        numbers[at : at + 2] = [min(max(result, 0), arithmetic.LARGEST)]
        lines.append(str(arithmetic.Expression(tuple(numbers), tuple(operations))))
    return lines


def _join_lines(lines: list[str], in_words: bool) -> str:
    if not in_words:
        return "\n".join(lines)
    openers = ["First", *["Next"] * (len(lines) - 2), "Finally"]
    return "\n".join(f"{opener}, {line}" for opener, line in zip(openers, lines, strict=True))


def completion(problem: Problem, prompt: Prompt, habits: Habits, rng: random.Random) -> str:
    """One trace with its answer; a prompt whose system message names <think> or <reasoning> asks for tags."""
    expression = arithmetic.expression_of(problem)
    habit, in_words = rng.random(), rng.random() < habits.in_words
    right_first = habit < habits.right_order
    lines = _rewritten_lines(expression, right_first, habits.slip, rng)
    text = _join_lines(lines, in_words)
    if not right_first and habit < habits.right_order + habits.look_back:
        lines = _rewritten_lines(expression, True, habits.slip, rng)
        text += f"\n{LOOK_BACK}\n{_join_lines(lines, in_words)}"
    answer = lines[-1]
    boxed = f"\\boxed{{{answer}}}"
    if "<reasoning>" in (prompt.system or ""):
        kept = rng.random() < habits.format_kept
        tagged = f"<reasoning>\n{text}\n</reasoning>\n<answer>\n{answer}\n</answer>"
        return tagged if kept else rng.choice([f"{text}\n{answer}", f"<answer>\n{answer}\n</answer>"])
    if "<think>" not in (prompt.system or ""):
        return f"{text}\n{boxed}" if rng.random() < habits.format_kept else f"{text}\nThe answer is {answer}."
    if rng.random() < habits.format_kept:
        return f"<think>{text}</think><answer>{boxed}</answer>"
    return rng.choice([f"{text}\n{boxed}", f"<think>{text}\n{boxed}</think>", f"<think>{text}</think>{boxed}"])
