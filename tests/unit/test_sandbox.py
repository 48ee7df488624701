"""The sandbox against programs that try to get out: no trace outside, each ended, also what they leave behind.

The programs are in cases/hostile_programs.txt. Some of them run without the sandbox, too: the checks see their traces.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from contracts.errors import UserError
from tasks import sandbox, sandbox_seccomp
from tasks.sandbox import Call, Limits

REFUSED = sandbox.refusal()
needs_sandbox = pytest.mark.skipif(REFUSED is not None, reason=f"no sandbox on this machine: {REFUSED}")
CASES = Path(__file__).with_name("cases") / "hostile_programs.txt"
PROGRAMS = dict(re.findall(r"^### (.+)\n((?:(?!### ).*\n?)*)", CASES.read_text(encoding="utf-8"), re.MULTILINE))
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


def of_sandboxes(runner: Path) -> list[psutil.Process]:
    """The processes of sandboxes that were started with a runner of that path; of this test alone."""
    return [one for one in psutil.process_iter(["cmdline"]) if str(runner) in (one.info["cmdline"] or [])]


def test_there_are_enough_programs_of_each_kind() -> None:
    assert len(PROGRAMS) >= 60
    kinds = {name.partition(":")[0] for name in PROGRAMS}
    assert kinds == {"network", "processes", "memory", "output", "files", "environment", "proc", "signals", "trace",
                     "namespaces", "imports", "crash"}  # fmt: skip


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("kind", sorted({name.partition(":")[0] for name in PROGRAMS}))
def test_nothing_gets_out(kind: str, outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = tmp_path / f"runner-{outside.name}.py"  # this test's own name in the list of processes
    runner.write_bytes(sandbox.RUNNER.read_bytes())
    monkeypatch.setattr(sandbox, "RUNNER", runner)
    sandbox.command.cache_clear()
    try:
        mode = Path(os.devnull).stat().st_mode
        for name, program in PROGRAMS.items():
            if not name.startswith(f"{kind}:"):
                continue
            outcome = sandbox.run(outside.aimed(program), "f", [Call()], SMALL)
            told = [value for value in outcome.values if value is not None]
            assert outcome.ended in ENDINGS and outside.traces(told) == [], name
            got_out = {"connected", "written", "mounted", "changed", "killed", "attached", "read", "entered", "root",
                       "raised", "imported", "forked", "left behind", "made", "deleted", "linked", "got"}  # fmt: skip
            assert not {json.loads(value) for value in told if value.startswith('"')} & got_out, name
        assert Path(os.devnull).stat().st_mode == mode
        _, alive = psutil.wait_procs(of_sandboxes(runner), timeout=30)
        assert not alive
    finally:
        sandbox.command.cache_clear()


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
        [sys.executable, "-I", str(sandbox.RUNNER)], input=json.dumps(job), capture_output=True, text=True, check=False
    )
    values = [line[1:] for line in done.stdout.split("\n") if line.startswith("=")]
    try:
        assert any(found.startswith(trace) for found in outside.traces(values)), done
    finally:
        Path(f"/tmp/{outside.name}").unlink(missing_ok=True)


@needs_sandbox
def test_what_calls_return_and_how_programs_end() -> None:
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
    assert len(sandbox_seccomp.program()) % 8 == 0 and len(sandbox_seccomp.program()) // 8 < 4096
    assert len(set(sandbox_seccomp.DENIED.values())) == len(sandbox_seccomp.DENIED)


def test_a_refusal_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sandbox.trial.cache_clear()
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    sandbox.command.cache_clear()
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
        sandbox.command.cache_clear()
