"""One process per environment and workflow that has imported the environment's packages, and forks all its jobs.

    the job's process (below Snakemake)       waits, and passes signals on
    the warm process (below nothing)          imports once
    └ a subreaper                             ends all that is below it when the job's process ends
      └ the job's server                      system/fork_server.py

The first job starts it. It ends with Snakemake, or when it had no job for a minute.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import psutil

from system import fork_client, fork_server, private_folder, subreaper
from system.errors import UserError

IDLE_SECONDS = 60.0
LOOK_SECONDS = 0.5
ATTEMPTS = 3  # it may end for want of jobs just when one asks
JOB_STARTED = "CROSSZERO_JOB_STARTED"  # environment variable: when a job's first process started; no package reads it
LONGEST_FOLDER = 60  # characters: below it is a socket, whose path may have 107 bytes


def workflow() -> tuple[int, float] | None:
    """Process id and start time of the Snakemake whose jobs share a process with this one; None without one.

    A job of a cluster has a Snakemake of its own, and shares with none.
    """
    if "SLURM_JOB_ID" in os.environ or not (pid := int(os.environ.get(subreaper.WORKFLOW, 0))):
        return None
    with suppress(psutil.NoSuchProcess):
        return pid, psutil.Process(pid).create_time()
    return None


def sources(root: Path = Path(__file__).parent.parent) -> str:
    """Hash of the Python files in the project's folders, by their names and content."""
    digest, folders = hashlib.sha256(), {file.parent for file in root.glob("*/*.py")}  # not results, work or logs
    for file in sorted(file for folder in folders for file in folder.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _runs(workflow: tuple[int, float]) -> bool:
    try:
        return bool(psutil.Process(workflow[0]).create_time() == workflow[1])
    except psutil.Error:
        return False


def run_again(workflow: tuple[int, float], modules: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run this program again in a fork of the warm process; returns its exit status.

    Args:
        workflow: that the warm process ends with.
        modules: that it imports.
        environment: what these read when they are imported; the fork gets it, too.

    Raises:
        UserError: the warm process cannot import the modules.
    """
    settings = {**os.environ, **environment}
    # What differs between jobs would be read too late: those have a warm process of their own. So have those that start
    # after a source was edited: no job mixes old and new code.
    read = {name: value for name, value in settings.items() if name != JOB_STARTED}
    key = hashlib.sha256(json.dumps([workflow, sys.executable, *modules, read, sources()], sort_keys=True).encode())
    own = private_folder.of_user(on_disk=True, longest=LONGEST_FOLDER)
    for _ in range(ATTEMPTS):
        folder = private_folder.make(own / f"warm-{key.hexdigest()[:16]}")
        with suppress(EOFError, ConnectionError, FileNotFoundError):
            connection = _connection(folder, workflow, modules, settings)
            fork_client.send_request(connection, fork_server.this_program() | {"environment": settings}, [0, 1, 2])
            return fork_client.exit_status(connection)
    log = (folder / "log").read_text(errors="replace").strip()
    shutil.rmtree(folder, ignore_errors=True)
    raise UserError(f"the packages of {sys.prefix} cannot be imported: {log[-2000:]}", code="imports-fail")


def _connection(
    folder: Path, workflow: tuple[int, float], modules: Sequence[str], settings: Mapping[str, str]
) -> socket.socket:
    """A connection to the warm process of this folder, started if there is none."""
    connection = socket.socket(socket.AF_UNIX)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with suppress(OSError):
            connection.connect(str(folder / "socket"))
            return connection
        (folder / "socket").unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(folder / "socket"))
        listener.listen(fork_client.DESCRIPTORS)
        code = (
            "from system import warm_processes; "
            f"warm_processes.serve({str(folder)!r}, {listener.fileno()}, {workflow!r}, {list(modules)!r})"
        )
        with (folder / "log").open("w") as log:
            subprocess.run(
                [sys.executable, "-c", code],
                env=settings, pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, check=True,
            )  # fmt: skip
        listener.close()
        connection.connect(str(folder / "socket"))
    return connection


def serve(folder: str, descriptor: int, workflow: tuple[int, float], modules: Sequence[str]) -> None:
    """The warm process: import the modules, and fork a job for each client until the workflow ends or none comes.

    Args:
        folder: of its socket; removed in the end.
        descriptor: of the socket, on which it listens.
        workflow: that it ends with.
        modules: of the environment's packages.
    """
    subreaper.live_on(True)  # where the job that starts it ends
    if os.fork():
        os._exit(0)  # so that it is not below the job that starts it, which ends earlier
    listener, own = socket.socket(fileno=descriptor), os.getpid()
    fork_server.preload(modules)
    jobs, idle_since = set[int](), time.monotonic()
    while _runs(workflow) and (jobs or time.monotonic() - idle_since < IDLE_SECONDS):
        if select.select([listener], [], [], LOOK_SECONDS)[0]:
            connection, _ = listener.accept()
            with suppress(EOFError):  # a client that ended just now
                request, received = fork_server.receive_request(connection)
                if (pid := os.fork()) == 0:
                    listener.close()
                    _job(own, request, received, connection)
                for number in received:
                    os.close(number)
                jobs.add(pid)
            connection.close()
        while jobs and (ended := os.waitpid(-1, os.WNOHANG)[0]):
            jobs.discard(ended)
        idle_since = time.monotonic() if jobs else idle_since
    listener.close()
    with suppress(OSError), Path(folder, "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # unless a job is about to start another one here
        shutil.rmtree(folder)
    for pid in jobs:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    for pid in jobs:
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _job(warm: int, request: dict[str, Any], received: list[int], connection: socket.socket) -> NoReturn:
    """In a fork: a subreaper, and below it the job's server, until that or the client ends.

    Args:
        warm: process id of the warm process.
        request: of the client.
        received: its descriptors.
        connection: to it.
    """
    status = 1
    try:
        fork_server.end_with(warm, signal.SIGTERM)
        subreaper.live_on(False)
        os.setsid()
        signals: list[int] = []
        for each in (*fork_client.FORWARDED, signal.SIGUSR1):
            signal.signal(each, lambda number, _: signals.append(number))
        subreaper.prctl(subreaper.PR_SET_CHILD_SUBREAPER, 1)
        parent = os.getpid()
        if (server := os.fork()) == 0:
            fork_server.end_with(parent, signal.SIGKILL)
            fork_server.default_signals()
            connection.close()
            os.setsid()
            fork_server.adopt_client(request, received)
            fork_server.serve(request)
        for number in received:
            os.close(number)
        with suppress(ConnectionError):  # a client that is gone, which ends the wait as well
            connection.sendall(os.getpid().to_bytes(8, "big"))
        status = subreaper.wait(server, signals, connection)
        subreaper.end_all()
        with suppress(ConnectionError):
            connection.sendall(status.to_bytes(8, "big"))
    except Exception:
        traceback.print_exc()  # into the warm process's log
    finally:
        subreaper.end_all()
        os._exit(status)
