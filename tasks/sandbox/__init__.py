"""Run a Python program that a model wrote, in a sandbox (bubblewrap), or not at all.

Inside there is no network, no home folder, no /proc, no /dev, no environment, and no file but Python's, read-only.
A program has user, process, mount, network and IPC namespaces of its own, and a seccomp filter that allows the system
calls which right programs need and no other. Time, memory, files and output are limited, and everything ends together.
Sandboxes are kept warm where that works (tasks.sandbox.warm_pool); elsewhere each program starts its own.

The program is given arguments, never the values that are expected: those are compared outside. So a program that takes
over its own process cannot pass a test that it does not solve.
"""

from __future__ import annotations

import json
import platform
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from system.errors import UserError
from tasks.sandbox import seccomp, single_use, warm_pool
from tasks.sandbox.pipes import ProcessOutput

NOT_WARM = 45  # exit status of python -m tasks.sandbox
SandboxRun = Callable[[bytes, int, float], ProcessOutput]  # of running a job: tasks.sandbox.single_use.run


class NotStarted(UserError):
    """The sandbox of one program did not start; the program is not to blame, and other sandboxes may start."""


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
    `time`, `output` or `died`. `runnable` is what the runner said: the program came to its end and has the function.
    """

    ended: str
    values: tuple[str | None, ...]
    runnable: bool


def why_unavailable() -> str | None:
    """Why no sandbox can be had on this machine, with what to do about it; None if there is one."""
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian: apt-get install bubblewrap; on a cluster: ask its administrators)"
    if not seccomp.available():
        return f"there is no filter of system calls for {platform.machine()} (there is for {', '.join(seccomp.AUDIT)})"
    why = try_sandbox(single_use.run)
    return why and f"bubblewrap starts none here ({why}): allow unprivileged user namespaces"


def why_not_warm() -> str | None:
    """Why no sandbox can be kept warm on this machine, so that each program starts its own; None if one can."""
    if why := why_unavailable():
        return why
    why = try_sandbox(warm_pool.POOL.run)
    return why and f"no program starts in a warm one ({why}): allow user namespaces inside bubblewrap's"


@cache
def try_sandbox(way: SandboxRun) -> str | None:
    """Run a program in a sandbox, and say why that fails; None if it does not."""
    try:
        outcome = _run("def f(x): return x + 1", "f", [Call((1,))], Limits(), way)
    except (OSError, UserError, warm_pool.Lost) as error:
        return str(error)
    return None if outcome.values == ("2",) else f"a trial program ended with: {outcome.ended}"


def run(program: str, function: str, calls: Sequence[Call], limits: Limits | None = None) -> Outcome:
    """Run a program in a sandbox and call its function.

    Args:
        program: Python source, as a model wrote it.
        function: what is called, such as `f` or `Solution().f`: names, dots and empty brackets.
        calls: the arguments of each call, in order.
        limits: for all of it together.

    Raises:
        UserError: there is no sandbox on this machine.
        NotStarted: there is, but this one did not start.
        ValueError: `function` is something else.
    """
    if why := why_unavailable():
        raise UserError(f"programs of a model run in a sandbox or not at all, and {why}", code="no-sandbox")
    if not re.fullmatch(r"[A-Za-z_]\w*(\(\))?(\.[A-Za-z_]\w*)?", function):
        raise ValueError(f"no function: {function!r}")
    if why_not_warm() is None:
        try:
            return _run(program, function, calls, limits or Limits(), warm_pool.POOL.run)
        except warm_pool.Lost:  # also if a program could bring it about: its outcome is that of a sandbox of its own
            pass
    return _run(program, function, calls, limits or Limits(), single_use.run)


def _run(program: str, function: str, calls: Sequence[Call], limits: Limits, way: SandboxRun) -> Outcome:
    nonce = secrets.token_hex(16)
    calling = {"function": function, "calls": [list(call) for call in calls]}
    job = {"program": program, **calling, "nonce": nonce, **limits._asdict()}
    try:
        output = way(json.dumps(job).encode("utf-8", "replace"), limits.output, limits.wall_s)
    except OSError as error:  # no process or no descriptor is left
        raise NotStarted(f"the sandbox of a program did not start ({error})", code="sandbox-not-started") from error
    if not output.ready:  # the program has not begun, so that it is not to blame
        why = " ".join(output.errors.decode("utf-8", "replace").split())[:200] or output.ended or "it wrote nothing"
        raise NotStarted(f"the sandbox of a program did not start ({why})", code="sandbox-not-started")
    return _outcome(output.results, len(calls), output.ended, nonce)


def _outcome(results: bytes, count: int, ended: str, nonce: str) -> Outcome:
    """What the runner reported; lines before the runner's own, which has the nonce, count as nothing."""
    lines = results.decode("utf-8", "replace").split("\n")[:-1]
    if f"runnable {nonce}" not in lines:
        return Outcome(ended or ("not runnable" if "broken" in lines[1:] else "died"), (None,) * count, False)
    said = [line for line in lines[lines.index(f"runnable {nonce}") + 1 :] if line != "done"]
    values = [line.removeprefix("=") if line.startswith("=") else None for line in said]
    complete = "all calls" if lines[-1] == "done" else "died"
    return Outcome(ended or complete, tuple((values + [None] * count)[:count]), True)
