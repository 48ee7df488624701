"""Tables and figures of 10⁴ to 10⁷ synthetic samples: seconds, and the most memory that all its processes take.

Run with `pytest tests/performance/test_report_speed.py --benchmark-only`. The largest takes five minutes, most of
them to make the samples. Measured on two cores: docs/results/demo.md.
"""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest

from contracts import tables
from eval import score

ROOT = Path(__file__).resolve().parents[2]
RUN = "synthetic/large/seed-0"
STEPS, BENCHMARKS, REPEATS = (0, 40, 80, 120, 160), ("gsm8k", "math500"), 10
PARTS = ("First, add the two numbers. ", "That is too high, let's try again.\n", "2. so 3 + 4 = 7. ", "Then x = 12.\n")

MEASURE = """
import json, resource, sys, time
from pathlib import Path
started = time.perf_counter()
from analysis.report.build import report
from analysis.load_results import load_results
runs = [load_results(Path(sys.argv[1]), sys.argv[2])]
read = time.perf_counter() - started
report(runs, Path(sys.argv[3]), "speed", "demo")
seconds, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
cpu = used.ru_utime + used.ru_stime
print(json.dumps({"seconds": seconds, "of the processor": cpu, "reading": read}))
"""


def make(folder: Path, samples: int, text_of: Callable[[int], str] | None = None, steps: Sequence[int] = STEPS) -> None:
    """A run of so many samples, their texts about 400 characters long and all different, or those of a function."""
    rng = np.random.default_rng(0)
    problems = samples // (len(steps) * len(BENCHMARKS) * REPEATS)
    count = problems * REPEATS
    problem = np.repeat([f"p{i:06}" for i in range(problems)], REPEATS)
    for step in steps:
        for name in BENCHMARKS:
            right = rng.random(count) < 0.3 + step / 400
            pieces = rng.integers(0, len(PARTS), (count, 16))
            text = ["".join(PARTS[i] for i in row) + f"\\boxed{{{n}}}" for n, row in enumerate(pieces.tolist())]
            if text_of:
                text = list(map(text_of, range(count)))
            columns = {
                "run": [RUN] * count, "step": [step] * count, "benchmark": [name] * count, "problem_id": problem,
                "repeat": np.tile(np.arange(REPEATS), problems), "seed": np.arange(count), "completion": text,
                "prompt": [f"What is the answer to problem {p}? Think step by step." for p in problem],
                "finish_reason": ["stop"] * count, "prompt_tokens": [12] * count, "gold": ["7"] * count,
                "completion_tokens": pieces.sum(axis=1) * 5, "protocol": ["demo"] * count,
                "answer": [str(n % 50) for n in range(count)], "grader": ["none"] * count,
                "verdict": np.where(right, "correct", "wrong"),
            }  # fmt: skip
            path = folder / "runs" / RUN / f"graded/step-{step}/{name}.parquet"
            tables.write(pa.table(columns), tables.GRADED, path)
    run = folder / "runs" / RUN
    tables.write(score.score_run(run / "graded"), tables.SCORE, run / "scores.parquet")
    log = [{"run": RUN, "stage": 1, "step": step, "reward_mean": step / 200} for step in range(1, 161)]
    tables.write(pa.Table.from_pylist(log, tables.TRAINING_LOG), tables.TRAINING_LOG, run / "training_log.parquet")


def memory(process: psutil.Process) -> int:
    """Bytes of a process and its forks. What they share is counted once."""
    total = 0
    with contextlib.suppress(psutil.Error):  # one that ended meanwhile
        for one in [process, *process.children(recursive=True)]:
            total += one.memory_full_info().pss
    return total


@pytest.mark.slow
@pytest.mark.parametrize("samples", [10_000, 100_000, 1_000_000, 10_000_000])
def test_report(benchmark, tmp_path: Path, samples: int) -> None:
    make(tmp_path, samples)
    command = [sys.executable, "-c", MEASURE, str(tmp_path), RUN, str(tmp_path / "report")]

    def once() -> dict[str, float]:
        process, most = psutil.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True), 0
        while process.poll() is None:
            most = max(most, memory(process))
            time.sleep(0.5)
        assert process.returncode == 0
        return {**json.loads(process.stdout.read()), "GiB": most / 2**30}

    measured = benchmark.pedantic(once, rounds=1)
    benchmark.extra_info |= {name: round(value, 2) for name, value in measured.items()}
    assert (tmp_path / "report" / "index.html").is_file()
