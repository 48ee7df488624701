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
from pathlib import Path
from typing import Any, NoReturn

DESCRIPTORS = 250  # that one message may carry; linux/include/net/scm.h has 253
POLL_SECONDS = 0.2  # for signals and what the kernel does not tell; the end of a fork is seen at once


FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
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
    client = [sys.executable, "-S", "-E", str(Path(__file__).absolute()), str(socket_file)]
    file.write_text(f'#!/bin/sh\nexec {shlex.join(client)} "$@"\n')
    file.chmod(0o755)
    return file


def receive(connection: socket.socket, size: int) -> bytes:
    """Receive exactly `size` bytes; raises EOFError if the other side has closed."""
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise EOFError
        received += part
    return received


def run_in_fork(server: str, arguments: list[str]) -> int:
    """Have the server run an interpreter's arguments; returns the exit status. Signals are forwarded."""
    listed = sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    descriptors = [number for number in listed if Path(f"/proc/self/fd/{number}").exists()]
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(server)
    send_request(
        connection, {"words": arguments, "folder": str(Path.cwd()), "environment": dict(os.environ)}, descriptors
    )
    for descriptor in descriptors:  # pipes close when the fork closes them
        if descriptor > 2:
            os.close(descriptor)
    return exit_status(connection)


def send_request(connection: socket.socket, request: dict[str, Any], descriptors: list[int]) -> None:
    """Send a request and wait until its fork has started; signals are forwarded to that, earlier ones too.

    Args:
        connection: to a server.
        request: words, folder and environment.
        descriptors: of this process, that the fork gets under the same numbers.

    Raises:
        EOFError: the server has ended.
    """

    def forward(number: int, _: Any) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    try:
        body = json.dumps(request | {"descriptors": descriptors}).encode()
        socket.send_fds(connection, [len(body).to_bytes(8, "big")], descriptors)
        connection.sendall(body)
        pid = int.from_bytes(receive(connection, 8), "big")
        for number in FORWARDED:
            signal.signal(number, forward)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)


def receive_request(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """In a server: the request of a client, and its descriptors as they arrived here."""
    size, received, _, _ = socket.recv_fds(connection, 8, DESCRIPTORS)
    return json.loads(receive(connection, int.from_bytes(size, "big"))), received


def exit_status(connection: socket.socket) -> int:
    """The exit status of what was asked for; signal handlers run while it is waited for."""
    while not select.select([connection], [], [], POLL_SECONDS)[0]:  # a signal just before it blocks does not wake it
        pass
    try:
        return int.from_bytes(receive(connection, 8), "big")
    except EOFError:  # the server was killed, and so was the fork
        return shell_status(-signal.SIGKILL)


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
    from system import private_folder

    global _forks
    folder = private_folder.new("forks")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.listen(DESCRIPTORS)
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
    from system import subreaper

    subreaper.prctl(subreaper.PR_SET_PDEATHSIG, number)
    if os.getppid() != server:
        os._exit(1)


def default_signals() -> None:
    """In a fork: the signals do again what they do in an interpreter."""
    for number in (*FORWARDED, signal.SIGUSR1):  # the last is a subreaper's
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _readable_at_end(pid: int) -> dict[int, int]:
    """A descriptor, by process, that can be read from when it has ended; none before Linux 5.3."""
    with contextlib.suppress(AttributeError, OSError):
        return {pid: os.pidfd_open(pid)}
    return {}


def _fork_for_clients(listener: socket.socket, first: int, python: Path) -> int:
    """Serve until the first fork ends; returns its exit status. The other forks end with their clients."""
    server, clients, ends = os.getpid(), dict[int, socket.socket](), _readable_at_end(first)
    while True:
        watched: list[Any] = [listener, *clients.values(), *ends.values()]
        ready, _, _ = select.select(watched, [], [], POLL_SECONDS)
        if listener in ready:
            connection, _ = listener.accept()
            request, received = receive_request(connection)
            pid = os.fork()
            if pid == 0:
                end_with(server, signal.SIGKILL)
                default_signals()
                for other in (listener, connection, *clients.values()):
                    other.close()
                for descriptor in ends.values():
                    os.close(descriptor)
                os.setsid()
                adopt_client(request, received)
                run_and_exit(request, str(python))
            for descriptor in received:
                os.close(descriptor)
            connection.sendall(pid.to_bytes(8, "big"))
            clients[pid] = connection
            ends |= _readable_at_end(pid)
        ended, status = os.waitpid(first, os.WNOHANG)
        if ended:
            return shell_status(os.waitstatus_to_exitcode(status))
        for pid, connection in list(clients.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = shell_status(os.waitstatus_to_exitcode(status))
                with contextlib.suppress(OSError):
                    connection.sendall(code.to_bytes(8, "big"))
                clients.pop(pid).close()
                if pid in ends:
                    os.close(ends.pop(pid))
            elif connection in ready:  # a client sends nothing after its request, so it was killed
                os.kill(pid, signal.SIGKILL)


def shell_status(code: int) -> int:
    """The exit status that a shell shows for a process that ended by a signal."""
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(run_in_fork(sys.argv[1], sys.argv[2:]))
