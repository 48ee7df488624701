"""Run a Python program that a model wrote, in a sandbox of its own (bubblewrap), or not at all.

Inside there is no network, no home folder, no /proc, no /dev, no environment, and no file but Python's, read-only.
It has a user and a process namespace of its own and, on x86-64, a seccomp filter that allows no process, no thread, no
socket and no ptrace. Time, memory, files and output are limited, and everything ends together.

The program is given arguments, never the values that are expected: those are compared outside. So a program that takes
over its own process cannot pass a test that it does not solve.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from contracts.errors import UserError
from tasks import sandbox_pipes, sandbox_seccomp

HOME = "/python"  # Python's place inside
RUNNER = Path(__file__).with_name("sandbox_runner.py")
SETUP_SECONDS = 60.0  # for the sandbox to start, on a busy machine


class Limits(NamedTuple):
    """What a program may use; memory and output in bytes."""

    cpu_s: int = 5
    wall_s: float = 60.0  # once the sandbox is ready; long, so that a busy machine changes no outcome
    memory: int = 512 << 20  # address space
    files: int = 16  # open at once
    output: int = 4 << 20  # results, and as much again of what it prints


class Call(NamedTuple):
    """One call of the program's function: positional and named arguments, as JSON holds them."""

    args: Sequence[Any] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012


class Outcome(NamedTuple):
    """How a program ended, and what its calls returned, as JSON; None for a call without a value.

    `ended` is `all calls`, `not runnable` (it does not compile, raises, or has no such function), or what cut it short:
    `time`, `output` or `died`.
    """

    ended: str
    values: tuple[str | None, ...]


def refusal() -> str | None:
    """Why no sandbox can be had on this machine, with what to do about it; None if there is one."""
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian: apt-get install bubblewrap; on a cluster: ask its administrators)"
    return trial()


@cache
def trial() -> str | None:
    """Start a sandbox and run a program in it."""
    try:
        outcome = _run("def f(x): return x + 1", "f", [Call((1,))], Limits())
    except (OSError, UserError) as error:
        return f"bubblewrap starts none here ({error}): allow unprivileged user namespaces"
    return None if outcome.values == ("2",) else f"a trial program did not run in it: {outcome.ended}"


def run(program: str, function: str, calls: Sequence[Call], limits: Limits | None = None) -> Outcome:
    """Run a program in a sandbox of its own and call its function.

    Args:
        program: Python source, as a model wrote it.
        function: what is called, such as `f` or `Solution().f`: names, dots and empty brackets.
        calls: the arguments of each call, in order.
        limits: for all of it together.

    Raises:
        UserError: there is no sandbox on this machine, or it did not start.
        ValueError: `function` is something else.
    """
    if why := refusal():
        raise UserError(f"programs of a model run in a sandbox or not at all, and {why}")
    if not re.fullmatch(r"[A-Za-z_]\w*(\(\))?(\.[A-Za-z_]\w*)?", function):
        raise ValueError(f"no function: {function!r}")
    return _run(program, function, calls, limits or Limits())


def _run(program: str, function: str, calls: Sequence[Call], limits: Limits) -> Outcome:
    job = {"program": program, "function": function, "calls": [list(call) for call in calls], **limits._asdict()}
    rules = [sandbox_seccomp.descriptor()] if sandbox_seccomp.available() else []
    filtered = [word for rule in rules for word in ("--seccomp", str(rule))]
    try:
        process = subprocess.Popen(
            [*command(), *filtered, f"{HOME}/bin/python", "-I", "-S", "-B", "-X", "utf8", f"{HOME}/runner.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,  # never a file or device of this machine: its owner could change it from inside
            pass_fds=rules,
            start_new_session=True,
            cwd="/",
            env={},
        )
    finally:
        for rule in rules:
            os.close(rule)
    with process:
        try:
            results, said, ended = sandbox_pipes.exchange(
                process, json.dumps(job).encode("utf-8", "replace"), limits.output, limits.wall_s, SETUP_SECONDS
            )
        finally:
            process.kill()  # the rest dies with it: --die-with-parent, and the first process of a namespace
    if not results.startswith(b"ready\n"):  # the program has not begun, so that it is not to blame
        why = " ".join(said.decode("utf-8", "replace").split())[:200] or ended or "it wrote nothing"
        raise UserError(f"the sandbox of a program did not start ({why})")
    return _outcome(results, len(calls), ended)


def _outcome(results: bytes, count: int, ended: str) -> Outcome:
    """What the runner reported; a line that is none of its own counts as nothing."""
    lines = results.decode("utf-8", "replace").split("\n")[:-1]
    values: list[str | None] = []
    for line in lines[1:]:
        if line not in ("runnable", "broken", "done"):
            values.append(line.removeprefix("=") if line.startswith("=") else None)
    values = (values + [None] * count)[:count]
    if ended:
        return Outcome(ended, tuple(values))
    if "broken" in lines[1:2]:
        return Outcome("not runnable", tuple(values))
    return Outcome("all calls" if lines[-1:] == ["done"] else "died", tuple(values))


@cache
def command() -> list[str]:
    """The words that describe the sandbox."""
    python = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    standard = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
    inside = f"{HOME}/lib/{standard.name}"
    alone = "--unshare-all --unshare-user --die-with-parent --new-session --cap-drop ALL --hostname sandbox"
    nobody = f"--uid 65534 --gid 65534 --clearenv --setenv LD_LIBRARY_PATH {HOME}/shared"
    words = [shutil.which("bwrap") or "bwrap", *alone.split(), *nobody.split()]
    words += ["--ro-bind", str(python), f"{HOME}/bin/python", "--ro-bind", str(standard), inside]
    for installed in ("site-packages", "dist-packages"):
        if (standard / installed).is_dir():
            words += ["--tmpfs", f"{inside}/{installed}", "--remount-ro", f"{inside}/{installed}"]
    for library in _libraries(python, standard):
        loader = Path(library).name.startswith("ld-")  # Python's file names it by its whole path
        words += ["--ro-bind", library, library if loader else f"{HOME}/shared/{Path(library).name}"]
    words += ["--ro-bind", str(RUNNER), f"{HOME}/runner.py", "--remount-ro", "/", "--chdir", "/"]
    return words


def _libraries(python: Path, standard: Path) -> list[str]:
    """The shared libraries of Python and of the standard library's extensions, and the loader."""
    extensions = sorted(str(file) for file in (standard / "lib-dynload").glob("*.so"))
    told = subprocess.run(["ldd", str(python), *extensions], capture_output=True, text=True, check=False).stdout
    found = re.findall(r"(?:=>\s*|^\s+)(/\S+)\s+\(0x", told, re.MULTILINE)
    return sorted({library for library in found if Path(library).is_file()})
