"""Run a command, and end everything that it started with it: `python system/subreaper.py COMMAND…`.

A trainer may start processes that detach themselves, as Ray does; when it is killed, some of them live on. This process
becomes their parent when they lose theirs (Linux), so it can find them. It kills them when the command ends, on
SIGTERM, SIGHUP or SIGUSR1, and when the process that started it is gone. It is two processes, each of which ends
everything when the other is killed. Its exit status is the command's. It uses only the standard library, because it
runs in every environment, before anything else.

Every job of the workflow runs below one, with `--job`: system/job_shell/bash. It ends with the Snakemake that
CROSSZERO_WORKFLOW names, also where that is gone before this process runs.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 1, 15, 36  # linux/prctl.h
OWN_LIFE, USUAL = b"cz-own-life", b"python"  # names of processes
LOOK_SECONDS = 0.2  # for signals and what the kernel does not tell; a child's end is seen at once
PATIENCE_SECONDS = 15.0  # between asking the command to end and killing it
JOB_PATIENCE_SECONDS = 25.0  # for a whole job: a trainer may save a checkpoint; less than system/work_lock.py waits
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)  # srun turns SIGTERM into a kill, but passes SIGUSR1 on
WORKFLOW = "CROSSZERO_WORKFLOW"  # environment variable: process id of the Snakemake that starts the jobs


def prctl(option: int, value: int | bytes) -> None:
    """The system call on Linux; elsewhere nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


def live_on(alone: bool) -> None:
    """Say of this process that subreapers leave it alone, or that they no longer do: it ends by itself."""
    prctl(PR_SET_NAME, OWN_LIFE if alone else USUAL)


def die_with_parent() -> None:
    """For a child between fork and exec: have the kernel kill it when its parent ends, however that ends (Linux)."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _processes() -> dict[int, tuple[int, int]]:
    """Parent and session of each process but those that live on (Linux; elsewhere none)."""
    table = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            name, _, rest = (entry / "stat").read_bytes().rpartition(b")")  # man 5 proc_pid_stat
            _, parent, _, session, *_ = rest.split()
            if not name.endswith(b"(" + OWN_LIFE):
                table[int(entry.name)] = int(parent), int(session)
    return table


def children() -> list[int]:
    """Processes whose parent is this one."""
    return [pid for pid, (parent, _) in _processes().items() if parent == os.getpid()]


def below_in_session() -> list[int]:
    """All processes below this one in its session: a program that starts another session ends that itself."""
    table, below, session = _processes(), [os.getpid()], os.getsid(0)
    for above in below:  # grows
        below += [pid for pid, (parent, its_session) in table.items() if parent == above and its_session == session]
    return below[1:]


def end_all() -> None:
    """Kill all children, then the orphans that they leave, until none is left."""
    while pids := children():
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _reap(ended: dict[int, int]) -> None:
    """Add the children that have ended, orphans of others included, with the exit status that a shell shows."""
    with suppress(ChildProcessError):
        while (pid_and_status := os.waitpid(-1, os.WNOHANG))[0]:
            code = os.waitstatus_to_exitcode(pid_and_status[1])
            ended[pid_and_status[0]] = code if code >= 0 else 128 - code


def _runs(pid: int, ended: dict[int, int]) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return pid not in ended
    return False


def readable_at_end(pid: int) -> list[FileIO]:
    """A file that can be read from when the child has ended, to select by; none before Linux 5.3."""
    with suppress(AttributeError, OSError):
        return [FileIO(os.pidfd_open(pid))]
    return []


def wait(
    pid: int,
    signals: Sequence[int],
    client: socket.socket | None = None,
    *,
    parent: int | None = None,
    to_ask: Callable[[], list[int]] = list,
    patience: float = PATIENCE_SECONDS,
) -> int:
    """Wait for a child, and ask it to end when a signal came or client or parent are gone; returns its exit status.

    Args:
        pid: of the child.
        signals: signals that this process got, appended by its handlers.
        client: a connection on which nothing comes but its end.
        parent: the process that should be this one's parent.
        to_ask: further processes that are asked to end.
        patience: seconds that all of them have for that.
    """
    ended: dict[int, int] = {}
    watched: list[Any] = [*([client] if client else []), *readable_at_end(pid)]
    while True:
        _reap(ended)
        if pid in ended:
            return ended[pid]
        if signals or (parent and os.getppid() != parent) or client in select.select(watched, [], [], LOOK_SECONDS)[0]:
            break
    remaining, until = {pid, *to_ask()}, time.monotonic() + patience
    for each in remaining:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGTERM)
    while any(_runs(each, ended) for each in remaining) and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
        _reap(ended)
    return ended.get(pid, 128 + signal.SIGKILL)


def _supervise(start: Callable[[], int], parent: int, patience: float, to_ask: Callable[[], list[int]] = list) -> int:
    """Start a child, wait for it as `wait` does, and end all that is below; returns its exit status."""
    signals: list[int] = []
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup does
            signal.signal(number, lambda number, _: signals.append(number))
    signal.signal(signal.SIGINT, lambda number, _: None)  # a terminal's reaches the command as well
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    status = wait(start(), signals, parent=parent, to_ask=to_ask, patience=patience)
    end_all()
    return status


def main() -> int:
    """Run the command of the command line; returns its exit status."""
    is_job = sys.argv[1] == "--job"
    parent = int(os.environ[WORKFLOW]) if is_job else os.getppid()
    patience, command = JOB_PATIENCE_SECONDS if is_job else PATIENCE_SECONDS, sys.argv[1 + is_job :]

    def start() -> int:
        process = subprocess.Popen(command, preexec_fn=die_with_parent, stdin=subprocess.DEVNULL)
        process.returncode = 0  # it is waited for by its id
        return process.pid

    def second(first: int = os.getpid()) -> int:
        if pid := os.fork():
            return pid
        os._exit(_supervise(start, first, patience, below_in_session))

    return _supervise(second, parent, patience)


if __name__ == "__main__":
    sys.exit(main())
