"""Hostile completions in one call: no hang, no crash, bounded memory, nothing run.

HOSTILE=100000 pytest -m long tests/faults/test_hostile_completions.py -s    prints the figures, beside math-verify in a
loop on the same completions for two minutes (by default 100 completions, 300 in `make test-long`, 1,000 in
`make test-all`, and no loop)
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from contracts import tables
from grading import Item, grade
from grading.worker_pool import POOL
from tests import budgets
from tests.faults.hostile_completions import completions

MANY = int(os.environ.get("HOSTILE", 1000 if budgets.ALL else 300))
FORBIDDEN = ("os.system", "exec", "compile", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect")
watching = []
sys.addaudithook(lambda event, arguments: watching[0].append(event) if watching and event in FORBIDDEN else None)
# In every worker and judge. Python itself compiles when modules are imported; what a completion says, nobody does
IN_JUDGES = """
import os, sys

def watch(event, arguments):
    source = arguments[0] if event == "compile" else ""
    source = source if isinstance(source, str) else bytes(source or b"").decode(errors="replace")
    writes = event == "open" and arguments[1] and set(str(arguments[1])) & set("wax+") and arguments[0] != os.devnull
    if event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect") or (
        "MADE" in source or "__import__('os')" in source or (writes and "SEEN" not in str(arguments[0]))
    ):
        os.close(os.open(f"SEEN-{event}-{os.getpid()}", os.O_CREAT | os.O_WRONLY))

sys.addaudithook(watch)
"""
LOOP = """
import json, logging, resource, sys, time
from math_verify import parse, verify
logging.disable(logging.CRITICAL)
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
started, done = time.monotonic(), 0
for gold, completion in json.load(sys.stdin):
    try:
        verify(parse(gold), parse(completion))
    except Exception:
        pass
    done += 1
    if time.monotonic() - started > 120:
        break
print(done / (time.monotonic() - started))
"""


def largest_ended() -> int:
    """Of all processes that this one has waited for, and theirs: the largest memory, in KiB."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def largest_alive() -> int:
    """Of all processes below this one: the largest memory that one had, in KiB."""
    sizes = [0]
    for process in psutil.Process().children(recursive=True):
        with suppress(OSError, IndexError):  # it may end meanwhile
            status = Path(f"/proc/{process.pid}/status").read_text()
            sizes.append(int(status.partition("VmHWM:")[2].split()[0]))
    return max(sizes)


@pytest.mark.slow
@pytest.mark.parametrize("count", [100, pytest.param(MANY, marks=pytest.mark.long)])
def test_hostile_completions_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    target, seen_file = tmp_path / "made", tmp_path / "seen"
    (tmp_path / "sitecustomize.py").write_text(IN_JUDGES.replace("MADE", str(target)).replace("SEEN", str(seen_file)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # a judge that imports a module first would open a file for it
    drawn = completions(count, seed=0, target=str(target))
    items = [Item("math", one.gold, one.completion, "stop") for one in drawn]
    POOL.close()
    grade(items[:20])  # starts the workers, which are processes
    seen: list[str] = []
    of_other_tests = largest_ended()
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    watching.append(seen)
    results = grade(items, deadline_s=2.0)
    watching.clear()
    seconds, grown = time.monotonic() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert POOL._workers
    largest = largest_alive()
    POOL.close()
    largest = max(largest, ended) if (ended := largest_ended()) > of_other_tests else largest
    graded = list(zip(drawn, results, strict=True))
    readable = [got.verdict for one, got in graded if one.right is not None]
    lost = readable.count("ungradable") / len(readable)
    false = [(one, got) for one, got in graded if one.right is not None and (got.verdict == "correct") != one.right]
    print(
        f"{count} completions, {count / seconds:.0f}/s, {grown // 1024} MiB more, largest judge {largest // 1024} MiB; "
        f"{len(readable)} have a readable answer: {100 * lost:.2f} % ungradable, {len(false)} judged wrongly"
    )
    assert all(got.verdict in tables.VERDICTS for got in results)
    assert lost <= 0.01 and not false, false[:5]
    assert grown < 500 * 1024 and largest < 1200 * 1024
    assert not seen and not target.exists() and not list(tmp_path.glob("seen*"))
    if count > 1000:
        pairs = json.dumps([(one.gold, one.completion) for one in drawn])
        done = subprocess.run([sys.executable, "-c", LOOP], input=pairs, capture_output=True, text=True)
        print(f"math-verify in a loop: {done.stdout.strip() or f'ended with status {done.returncode}'}/s")


def test_what_a_completion_runs_would_be_seen(tmp_path: Path) -> None:
    """The watch in the judges does see a payload that is run, and one that is only compiled."""
    (tmp_path / "sitecustomize.py").write_text(
        IN_JUDGES.replace("MADE", str(tmp_path / "made")).replace("SEEN", str(tmp_path / "seen"))
    )
    marker = tmp_path / "made"
    for code in (
        f"import os; os.system('touch {marker}')",
        f"compile({str(marker)!r}, 'x', 'exec')",
        f"open({str(marker)!r}, 'w')",
    ):
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True
        )
        traces = list(tmp_path.glob("seen*"))
        assert traces, code
        for file in traces:
            file.unlink()
