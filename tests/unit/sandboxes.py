"""Sandboxes of one test: how a program is run in one way alone, and the processes that belong to them."""

from __future__ import annotations

import contextlib

import psutil

from tasks import sandbox
from tasks.sandbox import Call, Limits, SandboxRun, bubblewrap
from tests import needs

REFUSED, NOT_WARM = sandbox.why_unavailable(), sandbox.why_not_warm()
needs_sandbox = needs.sandbox(REFUSED)
needs_warm = needs.sandbox(NOT_WARM)
SMALL = Limits(cpu_s=1, wall_s=3.0, memory=256 << 20, output=1 << 20)
ENDINGS = {"all calls", "not runnable", "time", "output", "died"}


def sandbox_processes(name: str) -> list[psutil.Process]:
    """bubblewrap's processes of the sandboxes with that host name; of this test alone."""
    return [one for one in psutil.process_iter(["cmdline"]) if name in (one.info["cmdline"] or [])]


def program_processes(process: psutil.Process) -> list[psutil.Process]:
    """The processes of programs in warm sandboxes, which are the second forks of their servers."""
    processes = []
    for server in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if server.cmdline()[-2:-1] == [f"{bubblewrap.HOME}/{bubblewrap.FORK_SERVER.name}"]:
                attendants = server.children() if server.name() != "bwrap" else []
                processes += [program for one in attendants for program in one.children()]
    return processes


def attempt(program: str, way: SandboxRun, limits: Limits = SMALL) -> sandbox.Outcome:
    """Run a program in one way alone: tasks.sandbox.run starts another sandbox where a warm one is lost."""
    outcome = sandbox._run(program, "f", [Call()], limits, way)
    assert outcome.ended in ENDINGS
    return outcome
