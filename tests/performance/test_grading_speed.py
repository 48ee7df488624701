"""Graded answers per second: ours, math-verify in a loop, and one subprocess per answer, on the same real generations;
and the memory of grading them, and of 100,000 made ones.

Run with `pytest tests/performance --benchmark-only`. Needs the data mirror; one round takes about a minute.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from grading import Item, grade
from grading.worker_pool import POOL
from system import json_lines

ROOT = Path(__file__).parents[2]
GENERATIONS = ROOT / "../shared/data/generations/qwen2.5-math-1.5b-instruct"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not GENERATIONS.is_dir(), reason="needs the data mirror at ../shared/data"),
]
EVERY = 40  # of which one is graded where each answer has a subprocess of its own, which takes about a second


@pytest.fixture(scope="module")
def items():
    rows = [row for path in sorted(GENERATIONS.glob("*.jsonl")) for row in json_lines.read(path)]
    return [Item("math", row["gt"], row["code"][0]) for row in rows]


def rate(benchmark, count):
    benchmark.extra_info["answers per second"] = round(count / benchmark.stats["mean"], 1)


def test_ours_with_starting_the_workers(benchmark, items):
    results = benchmark.pedantic(grade, (items,), setup=POOL.close, rounds=1)
    rate(benchmark, len(items))
    assert len(results) == len(items)


def test_ours_with_warm_workers(benchmark, items):
    POOL.close()  # whose caches have these items from the test before
    grade([Item("math", str(n), f"\\boxed{{{n}.}}") for n in range(64)])
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


PEAK = """
import json, resource, sys
from pathlib import Path
from grading import Item, grade
from grading.worker_pool import POOL
if sys.argv[1] == "real":
    rows = [json.loads(line) for path in sorted(Path(sys.argv[2]).glob("*.jsonl")) for line in path.open()]
    items = [Item("math", row["gt"], row["code"][0]) for row in rows]
else:  # 2,000 different pairs that sympy has to look at, each fifty times, after 2,000 characters of thinking
    thinking = "Let me see. " * 170
    items = [
        Item("math", f"x^2+{n % 2000}", f"{thinking}\\\\boxed{{{n % 2000} + x^{{2}}}}") for n in range(100_000)
    ]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
results = grade(items)
assert len(results) == len(items)
pids = [worker._process.pid for worker in POOL._workers]
children = [Path(f"/proc/{pid}/task/{pid}/children").read_text().split() for pid in pids]
peak = lambda pid: int(next(l.split()[1] for l in open(f"/proc/{pid}/status") if l.startswith("VmHWM")))
print(json.dumps({
    "items": before // 1024, "grading": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    "workers": [peak(pid) // 1024 for pid in pids], "judges": [peak(pid) // 1024 for few in children for pid in few],
}))
"""


@pytest.mark.parametrize("which", ["real", "made"])
def test_memory(benchmark, which):
    """MiB at the peak: of the process with the items alone and after grading, of the workers, and of what judges."""
    command = [sys.executable, "-c", PEAK, which, str(GENERATIONS)]
    done = benchmark.pedantic(
        subprocess.run, (command,), {"check": True, "capture_output": True, "text": True, "cwd": ROOT}, rounds=1
    )
    measured = json.loads(done.stdout)
    benchmark.extra_info.update(measured)
    assert measured["grading"] - measured["items"] < 500 and max(measured["workers"] + measured["judges"]) < 1500
