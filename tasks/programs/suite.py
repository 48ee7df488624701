"""A program and its tests: run in a sandbox, what its calls return compared outside with what is expected."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tasks import sandbox
from tasks.sandbox import Call, Limits

# Possessive: a million blanks after the fence are looked at once
_FENCE = re.compile(r"```[ \t]*+(?:python|py|Python)?[ \t]*+\n(.*?)```", re.DOTALL)
MOST_CHARACTERS = 50_000  # of a program


class Result(NamedTuple):
    """Whether a program runs and has the function, and which tests it passes."""

    runnable: bool
    passed: tuple[bool, ...]

    @property
    def share(self) -> float:
        """Of the tests, those that pass; 0 without tests."""
        return sum(self.passed) / len(self.passed) if self.passed else 0.0


class Suite(NamedTuple):
    """The tests of a problem, in order: arguments and the expected values as JSON, and the code before the program."""

    function: str
    calls: tuple[str, ...]
    expected: tuple[str, ...]
    before: str = ""
    limits: Limits = Limits()

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any], first: int | None = None) -> Suite:
        """The suite of a problem, or the first tests of it; KeyError, TypeError or ValueError if there is none."""
        tests = list(meta["tests"])[:first]
        if not tests:
            raise ValueError("a problem needs tests")
        calls = tuple(json.dumps([list(args), dict(kwargs)]) for args, kwargs, _ in tests)
        expected = tuple(json.dumps(value) for *_, value in tests)
        cpu_s, memory = int(meta.get("cpu_s", Limits().cpu_s)), int(meta.get("memory", Limits().memory))
        limits = Limits(cpu_s=cpu_s, wall_s=max(Limits().wall_s, 3.0 * cpu_s), memory=memory)
        return cls(str(meta["function"]), calls, expected, str(meta.get("before", "")), limits)


def extract_program(answer: str) -> str:
    """The program of an answer: what its last Markdown fence holds, or all of it."""
    fenced = _FENCE.findall(answer)
    return str(fenced[-1]) if fenced else answer


@lru_cache(maxsize=4096)
def run_tests(program: str, suite: Suite) -> Result:
    """Run a program on its tests; the same program is run once.

    Args:
        program: as a model wrote it.
        suite: its tests.

    Raises:
        UserError: there is no sandbox on this machine.
        NotStarted: this program's sandbox did not start; another one may.
    """
    if len(program) > MOST_CHARACTERS:
        return Result(False, (False,) * len(suite.calls))
    calls = [Call(*json.loads(call)) for call in suite.calls]
    outcome = sandbox.run(f"{suite.before}\n{program}", suite.function, calls, suite.limits)
    passed = tuple(
        value is not None and same_value(_read_value(value), json.loads(expected))
        for value, expected in zip(outcome.values, suite.expected, strict=True)
    )
    return Result(outcome.runnable, passed)


def _read_value(value: str) -> Any:
    """The value of a line; a nested list of another kind than any answer where it cannot be read."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return [[[...]]]


def same_value(value: Any, expected: Any) -> bool:
    """Whether values are equal as Python's `==` has it; to nine digits where the expected one is a float."""
    try:
        if isinstance(expected, float) and isinstance(value, int | float):
            return math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-12)
        if isinstance(value, list) and isinstance(expected, list) and len(value) == len(expected):
            return all(same_value(one, other) for one, other in zip(value, expected, strict=True))
        return bool(value == expected)
    except (RecursionError, OverflowError):  # OverflowError: a whole number that is no float
        return False


def read_asserts(source: str) -> list[tuple[list[Any], dict[str, Any], Any]] | None:
    """The tests of LeetCodeDataset's `check` function, which are lines `assert candidate(a = 1, …) == value`.

    Args:
        source: of the function.

    Returns:
        Arguments, named arguments and the expected value of each; None if a line is anything else, such as a call of a
        helper, because only values can be compared outside the sandbox.
    """
    try:
        (function,) = ast.parse(source).body
        return [_read_assert(line) for line in function.body]  # type: ignore[attr-defined]
    except (ValueError, SyntaxError, AttributeError, TypeError):
        return None


def _read_assert(line: ast.stmt) -> tuple[list[Any], dict[str, Any], Any]:
    match line:
        case ast.Assert(
            test=ast.Compare(
                left=ast.Call(func=ast.Name(id="candidate"), args=args, keywords=named),
                ops=[ast.Eq()],
                comparators=[value],
            )
        ) if all(one.arg for one in named):
            arguments = (
                [ast.literal_eval(one) for one in args],
                {str(one.arg): ast.literal_eval(one.value) for one in named},
            )
            read: tuple[list[Any], dict[str, Any], Any] = json.loads(json.dumps([*arguments, ast.literal_eval(value)]))
            return read
    raise ValueError("not a plain assert")
