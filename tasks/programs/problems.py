"""One-line functions of two whole numbers, whose first tests leave known faults uncaught.

Each problem has 64 tests and four faulty programs. The first 2 tests catch one of them, the first 8 two, the first 32
three, and only all of them catch the last, which is wrong in a corner case alone. So what a reward of fewer tests says
of these programs is known exactly.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tasks.problem_generation import ProblemSampler, check_names
from tasks.problems import Problem

TASK = "programs"
LARGEST = 9  # of the arguments and, in the description, of the numbers
KINDS: dict[str, tuple[str, str]] = {
    "sum": ("{x} times a plus {y} times b plus {z}", "{x}*a+{y}*b+{z}"),
    "larger": ("the larger of {x} times a and {y} times b, plus {z}", "max({x}*a,{y}*b)+{z}"),
    "smaller": ("the smaller of {x} times a and {y} times b, plus {z}", "min({x}*a,{y}*b)+{z}"),
    "distance": ("the distance of {x} times a from {y} times b, plus {z}", "abs({x}*a-{y}*b)+{z}"),
}
VALUES: dict[str, Callable[[int, int], int]] = {
    "sum": lambda a, b: a + b, "larger": max, "smaller": min, "distance": lambda a, b: abs(a - b),
}  # fmt: skip
# By the number of first tests that catch it: where the faulty program adds 1, as Python and as a function
FAULTS: dict[int, tuple[str, Callable[[int, int], bool]]] = {
    2: ("1", lambda a, b: True),
    8: ("(b==0)", lambda a, b: b == 0),
    32: ("(a==b)", lambda a, b: a == b),
    64: ("(a==b==0)", lambda a, b: a == b == 0),
}
TESTS = max(FAULTS)
WORDINGS = {"full": "Write a Python function f(a, b) that returns {words}.", "short": "{words}"}


def program_text(kind: str, numbers: Mapping[str, int], fault: int | None = None) -> str:
    """The program of a problem, or the faulty one that so many first tests catch."""
    added = f"+{FAULTS[fault][0]}" if fault else ""
    return f"def f(a, b): return {KINDS[kind][1].format(**numbers)}{added}"


@cache
def _test_arguments(until: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Arguments that catch the fault of so many tests, and all those that catch no fault of more tests."""
    later = [condition for count, (_, condition) in FAULTS.items() if count > until]
    span = range(-LARGEST, LARGEST + 1)
    allowed = [(a, b) for a in span for b in span if not any(condition(a, b) for condition in later)]
    return [pair for pair in allowed if FAULTS[until][1](*pair)], allowed


def sample_tests(
    kind: str, numbers: Mapping[str, int], rng: random.Random
) -> list[tuple[list[int], dict[str, Any], int]]:
    """Arguments, no named arguments, and the expected value of each test, in their order.

    Args:
        kind: a key of KINDS.
        numbers: x, y and z.
        rng: samples the arguments.
    """
    tests: list[tuple[list[int], dict[str, Any], int]] = []
    for until in FAULTS:
        catching, allowed = _test_arguments(until)
        group = [rng.choice(catching), *rng.choices(allowed, k=until - len(tests) - 1)]
        rng.shuffle(group)
        for a, b in group:
            value = VALUES[kind](numbers["x"] * a, numbers["y"] * b) + numbers["z"]
            tests.append(([a, b], {}, value))
    return tests


def generate(rows: int, split: str, seed: int, wording: str = "full") -> list[Problem]:
    """`rows` distinct functions of one split, the same for the same arguments.

    Args:
        rows: how many.
        split: `train` or `test`.
        seed: of the choice and of the tests.
        wording: a name in WORDINGS.

    Raises:
        UserError: an unknown split or wording, or more rows than there are functions.
    """
    check_names(TASK, "wording", [wording], WORDINGS)
    sampler = ProblemSampler(TASK, split, seed)
    functions = [
        (kind, {"x": x, "y": y, "z": z})
        for x, y, z in itertools.product(range(1, LARGEST + 1), repeat=3)
        for kind in KINDS
        if sampler.in_split(f"{kind} {x} {y} {z}")
    ]

    def problem_of(function: tuple[str, dict[str, int]]) -> Problem:
        kind, numbers = function
        text = WORDINGS[wording].format(words=KINDS[kind][0].format(**numbers))
        faults = {str(count): program_text(kind, numbers, count) for count in FAULTS}
        tests = sample_tests(kind, numbers, sampler.rng)
        meta = {"function": "f", "tests": tests, "faults": faults, "level": kind}
        return sampler.problem(text, program_text(kind, numbers), meta)

    chosen = sampler.rng.sample(functions, min(rows, len(functions)))
    return sampler.first(rows, map(problem_of, chosen))
