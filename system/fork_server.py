"""A job whose Python processes start in tenths of a second, as forks of one that has imported its packages.

The processes of a training (the trainer, Ray's actors, vLLM's engine) import the same packages, which takes each of
them six to nine seconds on one core. So on the CPU the job's first process imports them once, and then only forks:

    the job                       waits, and passes signals on
    └ system/subreaper.py      ends all that is below it with the job
      └ the server                imports, forks
        ├ the job's program       again from its start (system/forked_job.py)
        └ the trainer, Ray's actors, vLLM's engine …

In a workflow the imports are shared by all jobs of an environment: subreaper and server of a job are forks of a process
that its first job has started (system/warm_processes.py).

`interpreter` writes an executable that takes an interpreter's arguments and has the server run them in a fork, with the
caller's files, folder and environment. Ray starts its workers with it (`py_executable`), multiprocessing in them, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import importlib.abc
import json
import multiprocessing.process
import multiprocessing.spawn
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import traceback
import types
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from system import fork_client, private_folder, subreaper
from system.fork_client import FORWARDED

POLL_SECONDS = 0.2  # for what the kernel does not tell; the end of a fork is seen at once
_forks: Path | None = None  # in the job's program: the executable that runs in forks


def write_interpreter(file: Path) -> Path:
    """Write the executable: it forks in a job whose processes are forks, and is the plain interpreter elsewhere."""
    file.write_text(f'#!/bin/sh\nexec {shlex.quote(str(_forks or sys.executable))} "$@"\n')
    file.chmod(0o755)
    return file


def forked_command(command: Sequence[str]) -> list[str]:
    """The command; one for this interpreter runs in a fork if this job's processes are forks."""
    return [str(_forks) if _forks and command[0] == sys.executable else command[0], *command[1:]]


def is_fork() -> bool:
    """Whether this is the program of a job whose processes are forks."""
    return _forks is not None


def this_program() -> dict[str, Any]:
    """This process's own command, as a request to a server."""
    return {"words": sys.orig_argv[1:], "folder": str(Path.cwd()), "environment": dict(os.environ)}


def _script(socket_file: Path) -> Path:
    """Write the executable beside the server's socket."""
    file = socket_file.with_name("python")
    client = [sys.executable, "-S", "-E", fork_client.__file__, str(socket_file)]
    file.write_text(f'#!/bin/sh\nexec {shlex.join(client)} "$@"\n')
    file.chmod(0o755)
    return file


def receive_request(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """In a server: the request of a client, and its descriptors as they arrived here."""
    size, received, _, _ = socket.recv_fds(connection, 8, fork_client.DESCRIPTORS)
    return json.loads(fork_client.receive(connection, int.from_bytes(size, "big"))), received


def adopt_client(request: dict[str, Any], received: list[int]) -> None:
    """In a fork: take the client's files, folder and environment.

    Args:
        request: of the client: folder, environment, and the numbers of its file descriptors.
        received: these descriptors, as they arrived here.
    """
    wanted = request["descriptors"]
    beyond = max([2, *received, *wanted]) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, beyond) for descriptor in received]
    for descriptor in received:
        os.close(descriptor)
    for descriptor, number in zip(moved, wanted, strict=True):
        os.dup2(descriptor, number, inheritable=True)
        os.close(descriptor)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    _as_if_started()


def run_arguments(request: dict[str, Any], python: str) -> None:
    """Run the client's words.

    Args:
        request: words and folder.
        python: the executable that further processes are started with.
    """
    sys.executable = python
    multiprocessing.spawn.set_executable(python)
    multiprocessing.process.ORIGINAL_DIR = request["folder"]  # type: ignore[attr-defined]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    arguments = request["words"]
    while arguments[0].startswith("-") and arguments[0] not in ("-c", "-m"):  # interpreter flags: it is running already
        arguments = arguments[1:]
    first, *rest = arguments
    if first == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    elif first == "-m":
        sys.argv, sys.path[0] = rest, request["folder"]
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = [first, *rest], str(Path(first).parent)
        runpy.run_path(first, run_name="__main__")


def _as_if_started() -> None:
    """Do again what an interpreter and packages do once, from the environment that the fork has now."""
    for entry in reversed(list(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))):
        if entry not in sys.path:
            sys.path.insert(1, entry)
    sys.modules.pop("sitecustomize", None)
    with contextlib.suppress(ImportError):
        importlib.import_module("sitecustomize")
    tempfile.tempdir = None
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))


def run_and_exit(request: dict[str, Any], python: str) -> NoReturn:
    """`become`, and exit with the status that an interpreter would have."""
    status = 1
    try:
        run_arguments(request, python)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if not isinstance(end.code, int | None):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            multiprocessing.process._cleanup()  # type: ignore[attr-defined]
            importlib.import_module("atexit")._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


class WithoutRay(importlib.abc.MetaPathFinder):
    """Keeps the server from importing Ray, which reads the settings of its process when it is imported."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:  # noqa: D102
        if name == "ray":
            raise ImportError("not before the fork")


def preload(modules: Sequence[str]) -> None:
    """Import the modules for all forks to come."""
    sys.meta_path.insert(0, without_ray := WithoutRay())
    for module in modules:
        importlib.import_module(module)
    sys.meta_path.remove(without_ray)
    gc.collect()
    gc.freeze()  # pages that the collector does not write to stay shared


def serve(program: dict[str, Any]) -> NoReturn:
    """Run a job's program in a fork, and fork for each client until that has ended.

    Args:
        program: words and folder; this process has its environment and files already.
    """
    global _forks
    folder = private_folder.new("forks")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.listen(fork_client.DESCRIPTORS)
    python = _script(folder / "socket")
    server = os.getpid()
    first = os.fork()
    if first == 0:
        end_with(server, signal.SIGTERM)
        listener.close()
        os.setsid()
        _forks = python
        run_and_exit(program, sys.executable)
    status = 1
    try:
        for number in FORWARDED:
            signal.signal(number, lambda number, _: os.kill(first, number))
        status = _fork_for_clients(listener, first, python)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(status)


def end_with(server: int, number: int) -> None:
    """In a fork: have the kernel send it a signal when the server ends, however that ends."""
    subreaper.prctl(subreaper.PR_SET_PDEATHSIG, number)
    if os.getppid() != server:
        os._exit(1)


def default_signals() -> None:
    """In a fork: the signals do again what they do in an interpreter."""
    for number in (*FORWARDED, signal.SIGUSR1):  # the last is a subreaper's
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _fork_for_clients(listener: socket.socket, first: int, python: Path) -> int:
    """Serve until the first fork ends; returns its exit status. The other forks end with their clients."""
    server, end, clients = os.getpid(), subreaper.readable_at_end(first), dict[int, list[Any]]()
    while True:
        watched: list[Any] = [listener, *end, *chain.from_iterable(clients.values())]
        ready, _, _ = select.select(watched, [], [], POLL_SECONDS)
        if listener in ready:
            connection, _ = listener.accept()
            request, received = receive_request(connection)
            pid = os.fork()
            if pid == 0:
                end_with(server, signal.SIGKILL)
                default_signals()
                for other in (connection, *watched):
                    other.close()
                os.setsid()
                adopt_client(request, received)
                run_and_exit(request, str(python))
            for descriptor in received:
                os.close(descriptor)
            connection.sendall(pid.to_bytes(8, "big"))
            clients[pid] = [connection, *subreaper.readable_at_end(pid)]
        ended, status = os.waitpid(first, os.WNOHANG)
        if ended:
            return fork_client.shell_status(os.waitstatus_to_exitcode(status))
        for pid, (connection, *_) in list(clients.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = fork_client.shell_status(os.waitstatus_to_exitcode(status))
                with contextlib.suppress(OSError):
                    connection.sendall(code.to_bytes(8, "big"))
                for each in clients.pop(pid):
                    each.close()
            elif connection in ready:  # a client sends nothing after its request, so it was killed
                os.kill(pid, signal.SIGKILL)
