"""Graded answers per second: ours, math-verify in a loop, and one subprocess per answer, on the same real generations.

Run with `pytest tests/performance --benchmark-only`. Needs the data mirror; one round takes about a minute.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eval.grading import Item, grade
from eval.grading.workers import POOL

GENERATIONS = Path(__file__).parents[2] / "../shared/data/generations/qwen2.5-math-1.5b-instruct"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not GENERATIONS.is_dir(), reason="needs the data mirror at ../shared/data"),
]
EVERY = 40  # of which one is graded where each answer has a subprocess of its own, which takes about a second


@pytest.fixture(scope="module")
def items():
    rows = [json.loads(line) for path in sorted(GENERATIONS.glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [Item("math", row["gt"], row["code"][0]) for row in rows]


def rate(benchmark, count):
    benchmark.extra_info["answers per second"] = round(count / benchmark.stats["mean"], 1)


def test_ours_with_starting_the_workers(benchmark, items):
    results = benchmark.pedantic(grade, (items,), setup=POOL.close, rounds=1)
    rate(benchmark, len(items))
    assert len(results) == len(items)


def test_ours_with_warm_workers(benchmark, items):
    grade(items)
    benchmark.pedantic(grade, (items,), rounds=1)
    rate(benchmark, len(items))


def test_math_verify_in_a_loop(benchmark, items):
    from math_verify import parse, verify

    def loop():
        for item in items:
            verify(parse(f"${item.gold}$"), parse(item.completion))

    benchmark.pedantic(loop, rounds=1)
    rate(benchmark, len(items))


def test_one_subprocess_per_answer(benchmark, items):
    code = (
        "import sys; from math_verify import parse, verify; verify(parse('$' + sys.argv[1] + '$'), parse(sys.argv[2]))"
    )

    def loop():
        for item in items[::EVERY]:
            subprocess.run([sys.executable, "-c", code, item.gold, item.completion], check=True, capture_output=True)

    benchmark.pedantic(loop, rounds=1)
    rate(benchmark, len(items[::EVERY]))
