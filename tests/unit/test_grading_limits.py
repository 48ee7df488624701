"""Limits of judges in CPU time and memory. Neither load nor batch nor the number of workers moves a verdict."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from grading import Item, grade
from grading.sandboxed_worker import MEMORY
from grading.worker_pool import POOL, Pair
from tests.waiting import wait_until

JUDGE = "tests.unit.costly_judge.judge"
DEADLINE = 2.0  # of CPU time, of which to fill memory takes more on a busy machine
COSTLY = [
    (Pair("cpu 0", "yes", None), "correct"),
    (Pair("cpu 0.6", "yes", None), "correct"),  # more than the first pass allows
    (Pair("cpu 9", "yes", None), "ungradable"),
    (Pair("memory 600", "yes", None), "correct"),
    (Pair("memory 500", "no", None), "wrong"),  # both together are more than one process may have
    (Pair("memory 2000", "yes", None), "ungradable"),
    (Pair("cpu 0.6", "no", None), "wrong"),
    (Pair("cpu 0", "no", None), "wrong"),
]
MATHEMATICS = [
    ("x+1", "1+x"), ("9", "9^{9^{9^{9}}}"), ("\\frac{\\sqrt{3}}{2}", "\\sin(\\pi/3)"), ("7", "\\int_0^7 1 dx"),
    ("(x+y)^{6}", "(x+y)^{2}(y+x)^{4}"), ("\\ln 2", "\\ln 3"), ("[0,1)", "[0,1]"),
]  # fmt: skip


@contextmanager
def busy_machine() -> Iterator[None]:
    """Three processes per core that do nothing but compute."""
    loop = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(loop) for _ in range(3 * len(os.sched_getaffinity(0)))]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@pytest.mark.slow
def test_costs_in_a_batch() -> None:
    pairs, expected = [pair for pair, _ in COSTLY], [verdict for _, verdict in COSTLY]
    assert POOL.run(JUDGE, pairs[::-1], deadline_s=DEADLINE, workers=3) == expected[::-1]


@pytest.mark.slow
@pytest.mark.long
def test_costs_alone_in_a_batch_and_beside_a_busy_machine() -> None:
    pairs, expected = [pair for pair, _ in COSTLY], [verdict for _, verdict in COSTLY]
    assert [POOL.run(JUDGE, [pair], deadline_s=DEADLINE, workers=1)[0] for pair in pairs] == expected
    assert POOL.run(JUDGE, pairs, deadline_s=DEADLINE, workers=1) == expected
    with busy_machine():
        assert POOL.run(JUDGE, pairs[:3], deadline_s=DEADLINE, workers=2) == expected[:3]


@pytest.mark.slow
@pytest.mark.parametrize("grader", ["math-verify", "qwen-rules"])
def test_mathematics_alone_in_a_batch_and_beside_a_busy_machine(grader: str) -> None:
    items = [Item("math", gold, f"\\boxed{{{answer}}}") for gold, answer in MATHEMATICS]
    alone = [grade([item], deadline_s=1.0, grader=grader)[0] for item in items]
    assert grade(items, deadline_s=1.0, grader=grader) == alone
    with busy_machine():
        assert grade(items, deadline_s=1.0, grader=grader) == alone


@pytest.mark.parametrize("grader", ["math-verify", "qwen-rules"])
@pytest.mark.slow
def test_no_grader_takes_more_memory_than_its_limit(grader: str) -> None:
    hostile = ["\\binom{10^{9}}{5 \\cdot 10^{8}}", "(x+1)^{10^{8}}", "2^{10^{11}}", "10^{10^{9}}!"]
    grade([Item("math", "x^2+7", f"\\boxed{{{text}}}") for text in hostile], deadline_s=0.5, workers=1, grader=grader)
    judges = [child for worker in POOL._workers for child in psutil.Process(worker._process.pid).children()]
    assert judges
    # One that was forked just now sets its limit before it judges.
    wait_until(lambda: {resource.prlimit(child.pid, resource.RLIMIT_AS) for child in judges} == {(MEMORY, MEMORY)})
