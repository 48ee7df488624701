"""Rewards for programs (Zhang's post, section 2.1): the share of the tests that pass, or three steps and the format.

`tests` is how many of a problem's tests are run, from the first: 2, 8 or 32 in the document; without it, all. The
verdict is that of the tests that are run, not of all: a training that sees two tests knows no more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from grading.extraction import last_tag
from recipes.rewards import Reward, check_argument
from tasks.problems import Problem
from tasks.programs.suite import Result, Suite, extract_program, run_tests
from tasks.sandbox import NotStarted

FORMAT, NOT_RUNNABLE, SOME, ALL = 0.1, -1.0, 0.0, 1.0  # the document's


def share_passed(completions: Sequence[str], problems: Sequence[Problem], *, tests: int | None = None) -> list[Reward]:
    """The share of the first `tests` tests that the program passes; 0 without a program.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        tests: how many are run, 1 or more; all of them if not given.

    Raises:
        UserError: `tests` is below 1, or there is no sandbox on this machine.
    """
    return _reward_programs(completions, problems, tests, 0.0, lambda result: result.share)


def in_steps(completions: Sequence[str], problems: Sequence[Problem], *, tests: int | None = None) -> list[Reward]:
    """-1 for a program that does not run, 0 if some test fails, 1 if all pass; and 0.1 more or less for the format.

    The format is kept where <answer> holds something and is closed. The document does not say what a program earns that
    runs and passes no test; here it is 0, as with some.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        tests: how many are run, 1 or more; all of them if not given.

    Raises:
        UserError: `tests` is below 1, or there is no sandbox on this machine.
    """

    def worth(result: Result) -> float:
        return FORMAT + (ALL if all(result.passed) else SOME if result.runnable else NOT_RUNNABLE)

    return _reward_programs(completions, problems, tests, NOT_RUNNABLE - FORMAT, worth)


def _reward_programs(
    completions: Sequence[str],
    problems: Sequence[Problem],
    tests: int | None,
    without: float,
    worth: Callable[[Result], float],
) -> list[Reward]:
    """The reward of each completion's program; as many run at the same time as there are cores.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        tests: how many of the first tests are run.
        without: the reward without a program.
        worth: of a program's result.
    """
    check_argument("recipes.code.reward", "tests", tests, tests is None or tests >= 1, "1 or more")

    def reward(completion: str, problem: Problem) -> Reward:
        try:
            suite = Suite.from_meta(problem.meta, tests)
        except (KeyError, TypeError, ValueError):
            return Reward(None, "ungradable")
        answer = last_tag(completion)
        if not answer:
            return Reward(without, "format_error", True)
        try:
            result = run_tests(extract_program(answer), suite)
        except NotStarted:
            return Reward(None, "ungradable")
        return Reward(worth(result), "correct" if all(result.passed) else "wrong")

    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as threads:
        return list(threads.map(reward, completions, problems))
