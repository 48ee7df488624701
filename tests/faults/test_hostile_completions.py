"""Hostile completions in one call: no hang, no crash, bounded memory, nothing run.

HOSTILE=100000 pytest tests/faults/test_hostile_completions.py -s    prints the throughput (1,000 by default)
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

import pytest

from contracts import tables
from grading import Item, grade
from grading.worker_pool import POOL
from tests.faults.hostile_completions import completions

FORBIDDEN = ("os.system", "exec", "compile", "subprocess.Popen", "os.exec", "os.posix_spawn")
watching = []
sys.addaudithook(lambda event, arguments: watching[0].append(event) if watching and event in FORBIDDEN else None)


@pytest.mark.slow
def test_hostile_completions_in_one_call(tmp_path: Path) -> None:
    count, target = int(os.environ.get("HOSTILE", "1000")), tmp_path / "made"
    drawn = completions(count, seed=0, target=str(target))
    items = [Item("math", one.gold, one.completion, "stop") for one in drawn]
    grade(items[:20])  # starts the workers, which are processes
    seen: list[str] = []
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    watching.append(seen)
    results = grade(items, deadline_s=2.0)
    watching.clear()
    seconds, grown = time.monotonic() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    readable = [got.verdict for one, got in zip(drawn, results, strict=True) if one.readable]
    lost = readable.count("ungradable") / len(readable)
    print(f"{count} completions, {count / seconds:.0f}/s, {grown // 1024} MiB more, {100 * lost:.2f} % ungradable")
    assert all(got.verdict in tables.VERDICTS for got in results)
    assert lost <= 0.01 and grown < 500 * 1024
    assert not seen and not target.exists()
    assert POOL._workers
