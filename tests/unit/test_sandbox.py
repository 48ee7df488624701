"""The sandbox against programs that try to get out: no trace outside or for the next program, and each is ended.

The programs are in cases/hostile_programs.txt. All run in sandboxes of their own and, one after the other, in a warm
one. Some of them run without the sandbox, too: the checks see their traces.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from contracts.errors import UserError
from contracts.run_file import ROOT
from tasks import sandbox
from tasks.sandbox import Call, Limits, Way, command, pool, seccomp, single

REFUSED, NOT_WARM = sandbox.refusal(), sandbox.not_warm()
needs_sandbox = pytest.mark.skipif(REFUSED is not None, reason=f"no sandbox on this machine: {REFUSED}")
needs_warm = pytest.mark.skipif(NOT_WARM is not None, reason=f"no warm sandbox on this machine: {NOT_WARM}")
CASES = Path(__file__).with_name("cases")
TEXT = (CASES / "hostile_programs.txt").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"^### (.+)\n((?:(?!### ).*\n?)*)", TEXT, re.MULTILINE))
KINDS = sorted({name.partition(":")[0] for name in PROGRAMS})
LOOK = (CASES / "look_around.py").read_text(encoding="utf-8")
SMALL = Limits(cpu_s=1, wall_s=3.0, memory=256 << 20, output=1 << 20)
ENDINGS = {"all calls", "not runnable", "time", "output", "died"}


class Outside(NamedTuple):
    """What a program could reach, and what it is called."""

    folder: Path
    name: str
    secret: str
    listeners: dict[str, socket.socket]

    def aimed(self, program: str) -> str:
        """The program with this machine's places in it."""
        places = {"FOLDER": self.folder, "NAME": self.name, "PORT": self.listeners["tcp"].getsockname()[1],
                  "PID": os.getpid(), "HOME": Path.home()}  # fmt: skip
        for word, place in places.items():
            program = program.replace(f"@{word}@", str(place))
        return program

    def visitors(self) -> list[str]:
        """The listeners to which something has connected; whoever did so waits in the listener's queue."""
        found = []
        for who, listener in self.listeners.items():
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                found.append(who)
        return found

    def traces(self, values: list[str]) -> list[str]:
        """What a program has left or told."""
        found = [f"told {value[:80]}" for value in values if self.secret in value]
        found += [f"met {who}" for who in self.visitors()]
        names = {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        if names != {"secret", "secret_module.py", "socket"}:
            found.append(f"folder has {sorted(names)}")
        found += [place for place in (f"/tmp/{self.name}", f"/dev/shm/{self.name}", "trace") if Path(place).exists()]
        return found


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    folder, name, secret = tmp_path / "outside", f"hostile-{secrets.token_hex(6)}", secrets.token_hex(12)
    folder.mkdir()
    (folder / "secret").write_text(secret)
    (folder / "secret_module.py").write_text(f"SECRET = {secret!r}")
    monkeypatch.setenv("HOSTILE_SECRET", secret)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s").symlink_to(folder)  # the address of a socket has at most 107 characters
    unix, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    unix.bind("s/socket")
    abstract.bind(f"\0{name}")
    listeners = {"tcp": socket.create_server(("127.0.0.1", 0)), "unix": unix, "abstract": abstract}
    for listener in listeners.values():
        listener.listen()
        listener.setblocking(False)
    yield Outside(folder, name, secret, listeners)
    for listener in listeners.values():
        listener.close()


@pytest.fixture
def own_runner(outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Sandboxes of this test alone: their runner has this test's name in the list of processes."""
    runner = tmp_path / f"runner-{outside.name}.py"
    runner.write_bytes(command.RUNNER.read_bytes())
    options = [str(runner) if word == str(command.RUNNER) else word for word in command.bubblewrap()]
    monkeypatch.setattr(command, "bubblewrap", lambda: options)
    monkeypatch.setattr(pool, "POOL", pool.Pool())
    yield runner
    pool.POOL.close()
    _, alive = psutil.wait_procs(of_sandboxes(runner), timeout=30)
    assert not alive


def of_sandboxes(runner: Path) -> list[psutil.Process]:
    """The processes of sandboxes that were started with a runner of that path; of this test alone."""
    return [one for one in psutil.process_iter(["cmdline"]) if str(runner) in (one.info["cmdline"] or [])]


def test_there_are_enough_programs_of_each_kind() -> None:
    assert len(PROGRAMS) >= 120
    assert set(KINDS) == {"network", "processes", "memory", "output", "files", "environment", "proc", "signals",
                          "trace", "namespaces", "imports", "crash", "next"}  # fmt: skip


def check(name: str, way: Way, outside: Outside) -> None:
    """Run a hostile program, and look for its traces."""
    told = [value for value in attempt(outside.aimed(PROGRAMS[name]), way).values if value is not None]
    assert outside.traces(told) == [], name
    got_out = {"connected", "written", "mounted", "changed", "killed", "attached", "read", "entered", "root",
               "raised", "imported", "forked", "left behind", "made", "deleted", "linked", "got"}  # fmt: skip
    assert not {json.loads(value) for value in told if value.startswith('"')} & got_out, name


def attempt(program: str, way: Way, limits: Limits = SMALL) -> sandbox.Outcome:
    """Run a program in one way alone: tasks.sandbox.run starts another sandbox where a warm one is lost."""
    outcome = sandbox._run(program, "f", [Call()], limits, way)
    assert outcome.ended in ENDINGS
    return outcome


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_gets_out(kind: str, outside: Outside, own_runner: Path) -> None:
    mode = Path(os.devnull).stat().st_mode
    for name in (name for name in PROGRAMS if name.startswith(f"{kind}:")):
        check(name, single.run, outside)
    assert Path(os.devnull).stat().st_mode == mode


@pytest.mark.slow
@needs_warm
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_gets_out_of_a_warm_sandbox_or_to_the_next_program(
    kind: str, outside: Outside, own_runner: Path
) -> None:
    mark = f"mark:{outside.secret}"
    first = look(Limits())
    (warm,) = pool.POOL._idle
    for name in (name for name in PROGRAMS if name.startswith(f"{kind}:")):
        check(name, pool.POOL.run, outside)
        attempt(f"KEPT = {mark!r}\ndef f(): return KEPT", pool.POOL.run)
        assert look(Limits()) == first, name
        assert pool.POOL._idle == [warm], f"{name}: the fork server was lost"
    assert (first["marks"], first["open"], first["others"]) == (["mark:" + "0" * 24], [0, 1, 2, 3], [1])


def look(limits: Limits) -> dict[str, Any]:
    """What a program sees in a warm sandbox."""
    (value,) = attempt(LOOK, pool.POOL.run, limits).values
    assert value
    seen: dict[str, Any] = json.loads(value)
    return seen


@pytest.mark.slow
@needs_warm
def test_a_program_sees_its_own_namespaces_and_pipes_alone(own_runner: Path) -> None:
    """Two programs at the same time, of two warm sandboxes, beside their fork servers and this process."""
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(attempt, "import time\ndef f(): time.sleep(2)", pool.POOL.run) for _ in range(2)]
        programs: list[psutil.Process] = []
        while len(programs) < 2:
            programs = [one for one in of_programs(psutil.Process()) if one.children() == []]
        servers = [one.parent().parent() for one in programs]
        kinds = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")
        for kind in kinds:
            own = [Path(f"/proc/{one.pid}/ns/{kind}").readlink() for one in (psutil.Process(), *servers, *programs)]
            assert len(set(own)) == len(own), kind
        for program in programs:
            status = Path(f"/proc/{program.pid}/status").read_text(encoding="utf-8")
            held = dict(line.split(":\t") for line in status.split("\n") if ":\t" in line)
            assert int(held["CapEff"], 16) == int(held["CapPrm"], 16) == int(held["CapInh"], 16) == 0
            assert held["NoNewPrivs"] == "1" and held["Seccomp"] == ("2" if seccomp.available() else "0")
        assert [done.result().ended for done in waiting] == ["all calls"] * 2


def of_programs(process: psutil.Process) -> list[psutil.Process]:
    """The processes of programs in warm sandboxes, which are the second forks of their servers."""
    found = []
    for server in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if server.cmdline()[-2:-1] == [f"{command.HOME}/{command.FORK_SERVER.name}"]:
                attendants = server.children() if server.name() != "bwrap" else []
                found += [program for one in attendants for program in one.children()]
    return found


@pytest.mark.parametrize(
    ("name", "trace"),
    [
        ("network: connect", "met tcp"), ("network: unix socket of this machine", "met unix"),
        ("files: write outside", "folder has"), ("files: read a secret", "told"), ("environment: read it", "told"),
        ("imports: a path of this machine", "told"), ("files: write in /tmp", "/tmp/"),
    ],
)  # fmt: skip
def test_without_the_sandbox_the_same_programs_leave_a_trace(name: str, trace: str, outside: Outside) -> None:
    job = {"program": outside.aimed(PROGRAMS[name]), "function": "f", "calls": [[[], {}]], **Limits(files=64)._asdict()}
    done = subprocess.run(
        [sys.executable, "-I", str(command.RUNNER)], input=json.dumps(job), capture_output=True, text=True, check=False
    )
    values = [line[1:] for line in done.stdout.split("\n") if line.startswith("=")]
    try:
        assert any(found.startswith(trace) for found in outside.traces(values)), done
    finally:
        Path(f"/tmp/{outside.name}").unlink(missing_ok=True)


@needs_warm
@pytest.mark.parametrize("not_warm", [None, "each in a sandbox of its own"])
def test_what_calls_return_and_how_programs_end(not_warm: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "not_warm", lambda: not_warm)
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
    assert sandbox.run("while True: pass", "f", [Call()], SMALL).ended in ("died", "time")
    chatter = "def f():\n while True: print('x' * 999)"
    assert sandbox.run(chatter, "f", [Call()], Limits(cpu_s=60, wall_s=600.0, output=1 << 16)).ended == "output"
    with pytest.raises(ValueError, match="no function"):
        sandbox.run(program, "f(); import os", [])


def test_the_filter_is_a_program_of_the_kernels_form() -> None:
    assert len(seccomp.program()) % 8 == 0 and len(seccomp.program()) // 8 < 4096
    assert len(set(seccomp.DENIED.values())) == len(seccomp.DENIED)


@needs_warm
def test_a_warm_sandbox_outlives_the_thread_that_started_it_and_serves_many(own_runner: Path) -> None:
    for _ in range(2):
        with ThreadPoolExecutor(2) as threads:
            done = list(threads.map(lambda number: attempt(f"def f(): return {number}", pool.POOL.run), range(20)))
        assert [outcome.values for outcome in done] == [(str(number),) for number in range(20)]
        assert len(pool.POOL._idle) <= 2 and len(of_sandboxes(own_runner)) <= 4  # bubblewrap is two processes


@pytest.mark.slow
@needs_warm
@pytest.mark.parametrize("moment", ["idle", "running"])
def test_a_killed_warm_sandbox_costs_no_program_its_outcome(
    moment: str, own_runner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "not_warm", lambda: None)
    attempt("def f(): return 0", pool.POOL.run)
    (first,) = of_sandboxes(own_runner)[:1]
    with ThreadPoolExecutor(1) as threads:
        if moment == "idle":
            kill_all(own_runner)
        waiting = threads.submit(sandbox.run, "import time\ndef f(): time.sleep(1); return 5", "f", [Call()])
        if moment == "running":
            wait_for(lambda: of_programs(psutil.Process()))
            kill_all(own_runner)
        assert waiting.result() == sandbox.Outcome("all calls", ("5",))
    assert not first.is_running() and sandbox.run("def f(): return 6", "f", [Call()]).values == ("6",)


def kill_all(runner: Path) -> None:
    """Kill bubblewrap's processes: the first of the namespace takes the others with it."""
    for process in of_sandboxes(runner):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@needs_warm
def test_a_forked_process_has_sandboxes_of_its_own(own_runner: Path) -> None:
    attempt("def f(): return 1", pool.POOL.run)
    (mine,) = pool.POOL._idle
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            right = not pool.POOL._idle and attempt("def f(): return 2", pool.POOL.run).values == ("2",)
            pool.POOL.close()
            status = 0 if right else 1
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert attempt("def f(): return 3", pool.POOL.run).values == ("3",) and pool.POOL._idle == [mine]


ENDLESS = r"""
import sys
from tasks import sandbox
from tasks.sandbox import Call, Limits, pool, single
way = {"single": single.run, "warm": pool.POOL.run}[sys.argv[1]]
print("started", flush=True)
program = "import ctypes, time\ndef f(): ctypes.CDLL(None).prctl(1, 0); time.sleep(10 ** 6)"
sandbox._run(program, "f", [Call()], Limits(wall_s=600.0), way)
"""


@pytest.mark.slow
@needs_warm
@pytest.mark.parametrize("way", ["single", "warm"])
def test_nothing_outlives_a_killed_grader(way: str) -> None:
    words = [sys.executable, "-c", ENDLESS, way]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as grader:
        started = psutil.Process(grader.pid)
        wait_for(lambda: len(started.children(recursive=True)) >= (3 if way == "single" else 5))
        theirs = started.children(recursive=True)
        grader.kill()
    _, alive = psutil.wait_procs(theirs, timeout=30)
    assert not alive


@pytest.mark.slow
@needs_warm
def test_where_namespaces_cannot_be_nested_each_program_starts_its_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, wrapper = shutil.which("bwrap"), tmp_path / "bwrap"
    wrapper.write_text(f'#!/bin/sh\nexec {real} --unshare-user --disable-userns "$@"\n')
    wrapper.chmod(0o755)
    command.bubblewrap.cache_clear()
    sandbox.trial.cache_clear()
    monkeypatch.setattr(pool, "POOL", pool.Pool())
    try:
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert sandbox.refusal() is None and "unshare: No space left on device" in (sandbox.not_warm() or "")
        assert sandbox.run("def f(): return 1", "f", [Call()]).values == ("1",)
        assert pool.POOL._idle == []
        done = subprocess.run([sys.executable, "-m", "tasks.sandbox"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == sandbox.NOT_WARM and "a sandbox starts for each program" in done.stdout
    finally:
        command.bubblewrap.cache_clear()
        sandbox.trial.cache_clear()


def test_a_refusal_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sandbox.trial.cache_clear()
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    command.bubblewrap.cache_clear()
    monkeypatch.setattr(pool, "POOL", pool.Pool())
    try:
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert "No permissions to create new namespace)): allow unprivileged user" in (sandbox.refusal() or "")
        with pytest.raises(UserError, match="in a sandbox or not at all"):
            sandbox.run("def f(): return 1", "f", [Call()])
        monkeypatch.setattr(sandbox, "refusal", lambda: None)  # as if it had been there when it was asked for
        with pytest.raises(UserError, match="did not start"):
            sandbox.run("def f(): return 1", "f", [Call()])
        monkeypatch.undo()
        monkeypatch.setattr(sandbox.sys, "platform", "darwin")
        assert "bubblewrap is not installed" in (sandbox.refusal() or "")
    finally:
        sandbox.trial.cache_clear()
        command.bubblewrap.cache_clear()
