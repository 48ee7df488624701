"""Jobs of a workflow: they end when the workflow that started them is killed, and one at a time uses a work folder.

Snakemake runs a job through a shell. When Snakemake itself is killed without warning, shell and job live on, and the
same job started again would meet its own ghost; so a job watches the Snakemake above it and ends with it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contracts.errors import UserError

WATCH_SECONDS = 1.0
PR_SET_PDEATHSIG = 1  # linux/prctl.h
PATIENCE_SECONDS = 30.0


def _parent(pid: int) -> int:
    """Parent of a process, 0 if there is none to be seen (it ended, or this system has no /proc)."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _is_snakemake(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:3]
    except OSError:
        return False
    return any(Path(os.fsdecode(word)).name in ("snakemake", "snakemake.cli") for word in words)


def chain_to_snakemake() -> list[int]:
    """This process's ancestors up to the nearest Snakemake; empty if it was not started by one."""
    chain, pid = [], os.getppid()
    while pid > 1:
        chain.append(pid)
        if _is_snakemake(pid):
            return chain
        pid = _parent(pid)
    return []


def end_with_workflow() -> None:
    """From now on send this process SIGTERM as soon as the Snakemake that started it is gone."""
    chain = chain_to_snakemake()
    if not chain:
        return

    def watch() -> None:
        while True:
            time.sleep(WATCH_SECONDS)
            links = [os.getppid(), *(_parent(pid) for pid in chain[:-1])]
            if links != chain:  # somewhere in between a process has lost its parent
                os.kill(os.getpid(), signal.SIGTERM)
                return

    threading.Thread(target=watch, daemon=True).start()


def die_with_parent() -> None:
    """For a child between fork and exec: have the kernel kill it when its parent ends, however that ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def sole_user(folder: Path, doing: str) -> Iterator[None]:
    """Keep a second process from using a work folder; a ghost of a killed workflow gets half a minute to end.

    Raises:
        UserError: another process is still using it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise UserError(
                        f"another process is {doing} in {folder}: wait for it, end it, or use another work folder"
                    ) from None
                time.sleep(0.2)
        yield
