"""The sandbox against programs that try to get out: no trace outside or for the next program, and each is ended.

The programs are in cases/hostile_programs.txt. All run in sandboxes of their own and, one after the other, in a warm
one. Some of them run without the sandbox, too: the checks see their traces.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from tasks import sandbox
from tasks.sandbox import Limits, SandboxRun, bubblewrap, seccomp, single_use, warm_pool
from tests.unit.sandboxes import SMALL, attempt, needs_sandbox, needs_warm, program_processes

CASES = Path(__file__).with_name("cases")


def read_programs(file: str) -> dict[str, str]:
    """The programs of a file, by their names after `###`."""
    text = (CASES / file).read_text(encoding="utf-8")
    return dict(re.findall(r"^### (.+)\n((?:(?!### ).*\n?)*)", text, re.MULTILINE))


PROGRAMS = read_programs("hostile_programs.txt")
KINDS = sorted({name.partition(":")[0] for name in PROGRAMS})
MOST_HARM = ("files", "network", "processes")
NUMBERS = ",".join(str(number) for number, _ in [*seccomp.ALLOWED.values(), *seccomp.AT_ONCE.values()])
LOOK = (CASES / "look_around.py").read_text(encoding="utf-8")


class Outside(NamedTuple):
    """What a program could reach, and what it is called."""

    folder: Path
    name: str
    secret: str
    listeners: dict[str, socket.socket]

    def aimed(self, program: str) -> str:
        """The program with this machine's places in it."""
        places = {"FOLDER": self.folder, "NAME": self.name, "PORT": self.listeners["tcp"].getsockname()[1],
                  "PID": os.getpid(), "HOME": Path.home(), "ALLOWED": NUMBERS}  # fmt: skip
        for word, path in places.items():
            program = program.replace(f"@{word}@", str(path))
        return program

    def visitors(self) -> list[str]:
        """The listeners to which something has connected; whoever did so waits in the listener's queue."""
        visits = []
        for who, listener in self.listeners.items():
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                visits.append(who)
        return visits

    def traces(self, values: list[str]) -> list[str]:
        """What a program has left or told."""
        seen = [f"told {value[:80]}" for value in values if self.secret in value]
        seen += [f"met {who}" for who in self.visitors()]
        names = {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        if names != {"secret", "secret_module.py", "socket"}:
            seen.append(f"folder has {sorted(names)}")
        seen += [path for path in (f"/tmp/{self.name}", f"/dev/shm/{self.name}", "trace") if Path(path).exists()]
        return seen


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


def test_there_are_enough_programs_of_each_kind() -> None:
    assert len(PROGRAMS) >= 175
    kinds = (
        "network processes memory output files environment proc signals trace namespaces imports crash next locks "
        "calls waiting forged descriptors archives parsers bytecode values interpreter"
    )
    assert set(KINDS) == set(kinds.split())


def check(name: str, way: SandboxRun, outside: Outside) -> None:
    """Run a hostile program, and look for its traces."""
    # What waits for nothing takes no time of its own, however busy this machine is
    limits = SMALL._replace(wall_s=60.0) if name.startswith("waiting:") else SMALL
    outcome = attempt(outside.aimed(PROGRAMS[name]), way, limits)
    told = [value for value in outcome.values if value is not None]
    assert not (name.startswith("forged:") and outcome.runnable), name
    assert not (name.startswith("waiting:") and outcome.ended == "time"), name
    assert outside.traces(told) == [], name
    got_out = {"connected", "written", "mounted", "changed", "killed", "attached", "read", "entered", "root",
               "raised", "imported", "forked", "left behind", "made", "deleted", "linked", "got"}  # fmt: skip
    assert not {json.loads(value) for value in told if value.startswith('"')} & got_out, name


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind not in MOST_HARM)) for kind in KINDS]
)
def test_nothing_gets_out(kind: str, outside: Outside, own_sandboxes: str) -> None:
    mode = Path(os.devnull).stat().st_mode
    for name in (name for name in PROGRAMS if name.startswith(f"{kind}:")):
        check(name, single_use.run, outside)
    assert Path(os.devnull).stat().st_mode == mode


@pytest.mark.slow
@needs_warm
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_gets_out_of_a_warm_sandbox_or_to_the_next_program(
    kind: str, outside: Outside, own_sandboxes: str
) -> None:
    mark = f"mark:{outside.secret}"
    first = look(Limits())
    (warm,) = warm_pool.POOL._idle
    for name in (name for name in PROGRAMS if name.startswith(f"{kind}:")):
        check(name, warm_pool.POOL.run, outside)
        attempt(f"KEPT = {mark!r}\ndef f(): return KEPT", warm_pool.POOL.run)
        assert look(Limits()) == first, name
        assert warm_pool.POOL._idle == [warm], f"{name}: the fork server was lost"
    assert (first["marks"], first["open"], first["others"]) == (["mark:" + "0" * 24], [0, 1, 2, 3, 4], [])


def look(limits: Limits) -> dict[str, Any]:
    """What a program sees in a warm sandbox."""
    (value,) = attempt(LOOK, warm_pool.POOL.run, limits).values
    assert value
    seen: dict[str, Any] = json.loads(value)
    return seen


def has_calculated(process: psutil.Process) -> bool:
    """Whether a process is there and busy, as none that only starts others is."""
    with contextlib.suppress(psutil.Error):
        return bool(process.cpu_times().user > 0.1)
    return False


@pytest.mark.slow
@needs_warm
def test_a_program_sees_its_own_namespaces_and_pipes_alone(own_sandboxes: str) -> None:
    """Two programs at the same time, of two warm sandboxes, beside their fork servers and this process."""
    with ThreadPoolExecutor(2) as threads:
        busy = "import time\ndef f():\n while time.process_time() < 2: pass"
        waiting = [threads.submit(attempt, busy, warm_pool.POOL.run, Limits()) for _ in range(2)]
        programs: list[psutil.Process] = []
        while len(programs) < 2:
            programs = [one for one in program_processes(psutil.Process()) if has_calculated(one)]
        servers = [one.parent().parent() for one in programs]
        kinds = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")
        for kind in kinds:
            own = [Path(f"/proc/{one.pid}/ns/{kind}").readlink() for one in (psutil.Process(), *servers, *programs)]
            assert len(set(own)) == len(own), kind
        for program in programs:
            status = Path(f"/proc/{program.pid}/status").read_text(encoding="utf-8")
            held = dict(line.split(":\t") for line in status.split("\n") if ":\t" in line)
            assert int(held["CapEff"], 16) == int(held["CapPrm"], 16) == int(held["CapInh"], 16) == 0
            assert held["NoNewPrivs"] == "1"
        assert [done.result().ended for done in waiting] == ["all calls"] * 2


SHARED = read_programs("shared_files.txt")


def copied_from() -> list[Path]:
    """The files of this machine, and of this process's memory, that sandboxes have copies of."""
    files = bubblewrap.copied_files().values()
    return [one if isinstance(one, Path) else Path(f"/proc/self/fd/{one}") for one in files]


NO_FILTER = struct.pack("HBBI", seccomp.RETURN, 0, 0, seccomp.ALLOW)


@pytest.mark.slow
@needs_warm
@pytest.mark.parametrize("name", SHARED)
def test_without_the_filter_a_program_reaches_the_files_of_its_own_sandbox_alone(
    name: str, own_sandboxes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each returns whether it got what it tried, and what it saw of another sandbox and of this process."""
    monkeypatch.setattr(seccomp, "program", lambda: NO_FILTER)
    sources = copied_from()
    pools = [warm_pool.POOL, warm_pool.Pool()]
    with contextlib.closing(pools[1]), ThreadPoolExecutor(2) as threads:
        running = [threads.submit(attempt, SHARED[name], pool.run, Limits(files=64)) for pool in pools]
        while not all(one.done() for one in running):
            for source in sources:  # a file with a lease would be BlockingIOError
                os.close(os.open(source, os.O_RDONLY | os.O_NONBLOCK))
    for one in running:
        (value,) = one.result().values
        assert value, one.result()
        got, seen = json.loads(value)
        assert got >= 1 and seen == 0, name


FILES = """
import os
def f():
    places = [os.path.join(folder, name) for folder, _, names in os.walk("/") for name in [*names, ""]]
    return [[os.stat(place).st_dev, os.stat(place).st_ino] for place in places]
"""


@pytest.mark.slow
@needs_warm
def test_no_file_of_a_sandbox_is_one_of_this_machine_or_of_another(own_sandboxes: str) -> None:
    """Whatever a kernel lets programs do to a file that they can open ends at the sandbox."""
    seen = sources = {(one.st_dev, one.st_ino) for one in map(os.stat, copied_from())}
    with contextlib.closing(warm_pool.Pool()) as other:
        for way in (warm_pool.POOL.run, other.run, single_use.run):  # the warm ones stay while the next are looked at
            (value,) = attempt(FILES, way, Limits()).values
            files = {tuple(one) for one in json.loads(value or "[]")}
            assert len(files) >= len(sources) and not files & seen
            seen = seen | files


@pytest.mark.parametrize(
    ("name", "trace"),
    [
        ("network: connect", "met tcp"), ("network: unix socket of this machine", "met unix"),
        ("files: write outside", "folder has"), ("files: read a secret", "told"), ("environment: read it", "told"),
        ("imports: a path of this machine", "told"), ("files: write in /tmp", "/tmp/"),
    ],
)  # fmt: skip
def test_without_the_sandbox_the_same_programs_leave_a_trace(name: str, trace: str, outside: Outside) -> None:
    job = {
        "program": outside.aimed(PROGRAMS[name]),
        "function": "f",
        "calls": [[[], {}]],
        "nonce": "",
        **Limits(files=64)._asdict(),
    }
    done = subprocess.run(
        [sys.executable, "-I", str(bubblewrap.RUNNER)],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=False,
    )
    values = [line[1:] for line in done.stdout.split("\n") if line.startswith("=")]
    try:
        assert any(line.startswith(trace) for line in outside.traces(values)), done
    finally:
        Path(f"/tmp/{outside.name}").unlink(missing_ok=True)


RIGHT = read_programs("right_programs.txt")
# Calls that do the same for other releases of libc and kernels: one of each group is needed
SAME = [{"open", "openat"}, {"stat", "lstat", "fstat", "newfstatat"}, {"readlink", "readlinkat"}, {"read", "pread64"},
        {"nanosleep", "clock_nanosleep"}, {"poll", "ppoll", "select", "pselect6"}]  # fmt: skip


def failing_right_programs(way: SandboxRun) -> Iterator[str]:
    """The right programs that do not return what they should."""
    return (name for name, text in RIGHT.items() if attempt(text, way, Limits()).values != ('"right"',))


@needs_sandbox
@pytest.mark.slow
def test_right_programs_need_no_other_system_call() -> None:
    assert len(RIGHT) >= 12 and not list(failing_right_programs(single_use.run))


@needs_warm
@pytest.mark.slow
@pytest.mark.parametrize(
    "calls",
    [*({name} for name in [*seccomp.ALLOWED, *seccomp.AT_ONCE] if not any(name in same for same in SAME)), *SAME],
)
def test_each_system_call_is_one_that_a_right_program_needs(calls: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = seccomp.program(without=frozenset(calls)).hex()
    monkeypatch.setattr(seccomp, "program", lambda: bytes.fromhex(fewer))
    pool = warm_pool.Pool()
    with contextlib.closing(pool), contextlib.suppress(warm_pool.Lost):  # not even the runner starts
        assert "exit_group" in calls or any(failing_right_programs(pool.run))


def answer(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """What the kernel would do with a system call: the filter, run as linux/filter.h says."""
    data = struct.pack("IIQ6Q", number, architecture or seccomp.AUDIT[machine], 0, *[*arguments, 0, 0, 0, 0, 0, 0][:6])
    lines = list(struct.iter_unpack("HBBI", seccomp.program(machine)))
    at, loaded = 0, 0
    while True:
        code, when_true, when_false, value = lines[at]
        if code == seccomp.RETURN:
            return int(value)
        if code == seccomp.LOAD:
            (loaded,) = struct.unpack_from("I", data, value)
            at += 1
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            at += 1 + (when_true if holds else when_false)


@pytest.mark.parametrize("machine", seccomp.AUDIT)
def test_what_the_filter_answers(machine: str) -> None:
    column = list(seccomp.AUDIT).index(machine)
    refused = {seccomp.ERRNO | errno.EPERM, seccomp.ERRNO | errno.ENOSYS}
    numbers = {columns[column] for columns in [*seccomp.ALLOWED.values(), *seccomp.AT_ONCE.values()]}
    assert {answer(machine, number) for number in set(range(1000)) - numbers} == refused
    fcntl = seccomp.ALLOWED["fcntl"][column] or 0
    allowed = [command for command in range(1 << 12) if answer(machine, fcntl, 3, command) == seccomp.ALLOW]
    assert allowed == [1, 2, 1030] and answer(machine, fcntl, 3, (1 << 32) + 1024) in refused
    mmap = seccomp.ALLOWED["mmap"][column] or 0
    assert answer(machine, mmap, 0, 0, 0, 0x22) == seccomp.ALLOW and answer(machine, mmap, 0, 0, 0, 0x40022) in refused
    sleep = seccomp.AT_ONCE["nanosleep"][column] or 0
    assert answer(machine, sleep) == seccomp.ERRNO
    assert {answer(machine, 0, architecture=0x40000003), answer(machine, 0x40000000)} == {seccomp.KILL}


def test_where_there_is_no_filter_no_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: f"/usr/bin/{name}")  # where it is installed, or not
    monkeypatch.setattr(seccomp.platform, "machine", lambda: "riscv64")
    assert "no filter of system calls for riscv64" in (sandbox.why_unavailable() or "")
