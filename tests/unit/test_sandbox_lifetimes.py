"""How programs end and what their calls return; warm sandboxes that are shared, forked, killed, or cannot be had."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from contracts.run_file import ROOT
from tasks import sandbox
from tasks.sandbox import Call, Limits, bubblewrap, warm_pool
from tests.unit.sandboxes import SMALL, attempt, needs_warm, program_processes, sandbox_processes
from tests.user_errors import refused
from tests.waiting import LIMIT, wait_until


@pytest.mark.slow
@needs_warm
@pytest.mark.parametrize("not_warm", [None, "each in a sandbox of its own"])
def test_what_calls_return_and_how_programs_end(not_warm: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "why_not_warm", lambda: not_warm)
    program = "import sys\nprint('said')\ndef f(x, y=1): return sys.exit(3) if x is None else [x, y, 'é']"
    calls = [Call((1,)), Call(("a",), {"y": {"k": [None, 1.5]}}), Call((1, 2, 3)), Call((None,)), Call((1,))]
    outcome = sandbox.run(program, "f", calls)
    assert [value and json.loads(value) for value in outcome.values] == [
        [1, 1, "é"], ["a", {"k": [None, 1.5]}, "é"], None, None, None]  # fmt: skip
    assert outcome.ended == "died"
    assert sandbox.run(program, "f", calls[:3]).ended == "all calls"
    method = "class Solution:\n    def g(self, x): return x + 1"
    assert sandbox.run(method, "Solution().g", [Call((1,))]).values == ("2",)
    assert sandbox.run("def f(", "f", [Call()]).ended == sandbox.run("x = 1", "f", [Call()]).ended == "not runnable"
    assert sandbox.run("while True: pass\ndef f(): 1", "f", [Call()], SMALL).ended in ("died", "time")
    chatter = "def f():\n while True: print('x' * 999)"
    assert sandbox.run(chatter, "f", [Call()], Limits(cpu_s=60, wall_s=600.0, output=1 << 16)).ended == "output"
    with pytest.raises(ValueError, match="no function"):
        sandbox.run(program, "f(); import os", [])


@pytest.mark.slow
@needs_warm
def test_a_warm_sandbox_outlives_the_thread_that_started_it_and_serves_many(own_sandboxes: str) -> None:
    for _ in range(2):
        with ThreadPoolExecutor(2) as threads:
            done = list(threads.map(lambda number: attempt(f"def f(): return {number}", warm_pool.POOL.run), range(20)))
        assert [outcome.values for outcome in done] == [(str(number),) for number in range(20)]
        assert (
            len(warm_pool.POOL._idle) <= 2 and len(sandbox_processes(own_sandboxes)) <= 4
        )  # bubblewrap is two processes


@pytest.mark.slow
@needs_warm
@pytest.mark.parametrize("moment", ["idle", "running"])
def test_a_killed_warm_sandbox_costs_no_program_its_outcome(
    moment: str, own_sandboxes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "why_not_warm", lambda: None)
    attempt("def f(): return 0", warm_pool.POOL.run)
    (first,) = sandbox_processes(own_sandboxes)[:1]
    with ThreadPoolExecutor(1) as threads:
        if moment == "idle":
            kill_all(own_sandboxes)
        waiting = threads.submit(sandbox.run, BUSY, "f", [Call()])
        if moment == "running":
            wait_until(lambda: program_processes(psutil.Process()))
            kill_all(own_sandboxes)
        assert waiting.result() == sandbox.Outcome("all calls", ("5",), True)
    assert not first.is_running() and sandbox.run("def f(): return 6", "f", [Call()]).values == ("6",)


BUSY = "import time\ndef f():\n while time.process_time() < 1: pass\n return 5"


def kill_all(name: str) -> None:
    """Kill bubblewrap's processes: the first of the namespace takes the others with it."""
    for process in sandbox_processes(name):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.mark.slow
@needs_warm
def test_many_start_at_once_where_few_files_may_be_open(own_sandboxes: str) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(list(Path("/proc/self/fd").iterdir())) + len(bubblewrap.copied_files()) + 80
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, before[1]))
    try:
        with ThreadPoolExecutor(6) as threads:
            busy = "import time\ndef f():\n while time.process_time() < 0.2: pass\n return 1"
            done = list(threads.map(lambda _: attempt(busy, warm_pool.POOL.run), range(6)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert [outcome.values for outcome in done] == [("1",)] * 6


@pytest.mark.slow
@needs_warm
def test_a_forked_process_has_sandboxes_of_its_own(own_sandboxes: str) -> None:
    attempt("def f(): return 1", warm_pool.POOL.run)
    (mine,) = warm_pool.POOL._idle
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            right = not warm_pool.POOL._idle and attempt("def f(): return 2", warm_pool.POOL.run).values == ("2",)
            warm_pool.POOL.close()
            status = 0 if right else 1
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert attempt("def f(): return 3", warm_pool.POOL.run).values == ("3",) and warm_pool.POOL._idle == [mine]


ENDLESS = r"""
import sys
from tasks import sandbox
from tasks.sandbox import Call, Limits, single_use, warm_pool
way = {"single": single_use.run, "warm": warm_pool.POOL.run}[sys.argv[1]]
print("started", flush=True)
program = "import ctypes\ndef f():\n ctypes.CDLL(None).prctl(1, 0)\n while True: pass"
sandbox._run(program, "f", [Call()], Limits(cpu_s=600, wall_s=600.0), way)
"""


@pytest.mark.slow
@needs_warm
@pytest.mark.parametrize("way", ["single", "warm"])
def test_nothing_outlives_a_killed_grader(way: str) -> None:
    command = [sys.executable, "-c", ENDLESS, way]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as grader:
        started = psutil.Process(grader.pid)
        wait_until(lambda: len(started.children(recursive=True)) >= (3 if way == "single" else 5))
        theirs = started.children(recursive=True)
        grader.kill()
    _, alive = psutil.wait_procs(theirs, timeout=LIMIT)
    assert not alive


@pytest.mark.slow
@needs_warm
def test_where_namespaces_cannot_be_nested_each_program_starts_its_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, wrapper = shutil.which("bwrap"), tmp_path / "bwrap"
    wrapper.write_text(f'#!/bin/sh\nexec {real} --unshare-user --disable-userns "$@"\n')
    wrapper.chmod(0o755)
    sandbox.try_sandbox.cache_clear()
    monkeypatch.setattr(warm_pool, "POOL", warm_pool.Pool())
    try:
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert sandbox.why_unavailable() is None and "unshare: No space left on device" in (
            sandbox.why_not_warm() or ""
        )
        assert sandbox.run("def f(): return 1", "f", [Call()]).values == ("1",)
        assert warm_pool.POOL._idle == []
        done = subprocess.run([sys.executable, "-m", "tasks.sandbox"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == sandbox.NOT_WARM and "a sandbox starts for each program" in done.stdout
    finally:
        sandbox.try_sandbox.cache_clear()


@pytest.mark.slow
def test_a_refusal_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sandbox.try_sandbox.cache_clear()
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(warm_pool, "POOL", warm_pool.Pool())
    try:
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert "No permissions to create new namespace)): allow unprivileged user" in (sandbox.why_unavailable() or "")
        with refused("no-sandbox"):
            sandbox.run("def f(): return 1", "f", [Call()])
        monkeypatch.setattr(sandbox, "why_unavailable", lambda: None)  # as if it had been there when it was asked for
        with refused("sandbox-not-started"):
            sandbox.run("def f(): return 1", "f", [Call()])
        monkeypatch.undo()
        monkeypatch.setattr(sandbox.sys, "platform", "darwin")
        assert "bubblewrap is not installed" in (sandbox.why_unavailable() or "")
    finally:
        sandbox.try_sandbox.cache_clear()
