"""A Python interpreter that starts in tenths of a second, as a fork of one that has imported its packages.

The processes of a training (Ray's actors, vLLM's engine) import the same packages, which takes each of them six to nine
seconds on one core. Here a server imports them once and forks. `script` writes an executable that takes an
interpreter's arguments and has the server run them in a fork, with the caller's files, folder and environment. Ray
starts its workers with it (`py_executable`), and so does multiprocessing in them.

    python -m frameworks.verl.cpu.fork_server SOCKET MODULE…                                   the server
    python fork_server.py --client SOCKET (FILE.py | -c CODE | -m MODULE) [ARGUMENT…]             what `script` calls
"""

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
import signal
import socket
import sys
import traceback
import types
from pathlib import Path
from typing import Any

DESCRIPTORS = 250  # that one message may carry; linux/include/net/scm.h has 253
POLL_SECONDS = 0.05


def script(server: Path) -> Path:
    """Write the executable beside the server's socket."""
    file = server.with_name("python")
    words = [sys.executable, "-S", "-E", str(Path(__file__).absolute()), "--client", str(server)]
    file.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    file.chmod(0o755)
    return file


def receive(connection: socket.socket, size: int) -> bytes:
    """Receive exactly `size` bytes; raises EOFError if the other side has closed."""
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def client(server: str, words: list[str]) -> int:
    """Have the server run an interpreter's arguments; returns the exit status. Signals are forwarded."""
    listed = sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    descriptors = [number for number in listed if Path(f"/proc/self/fd/{number}").exists()]
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(server)
    request = {"words": words, "folder": str(Path.cwd()), "environment": dict(os.environ), "descriptors": descriptors}
    body = json.dumps(request).encode()
    socket.send_fds(connection, [len(body).to_bytes(8, "big")], descriptors)
    connection.sendall(body)
    pid = int.from_bytes(receive(connection, 8), "big")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    for descriptor in descriptors:  # pipes close when the fork closes them
        if descriptor > 2:
            os.close(descriptor)
    return int.from_bytes(receive(connection, 8), "big")


def become(request: dict[str, Any], received: list[int], python: str) -> None:
    """In the fork: run the client's arguments with its files, folder and environment.

    Args:
        request: of the client: words, folder, environment, and the numbers of its file descriptors.
        received: these descriptors, as they arrived here.
        python: the executable that further processes are started with.
    """
    wanted = request["descriptors"]
    beyond = max(*received, *wanted) + 1
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
    sys.executable = python
    multiprocessing.spawn.set_executable(python)
    multiprocessing.process.ORIGINAL_DIR = request["folder"]  # type: ignore[attr-defined]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    words = request["words"]
    while words[0].startswith("-") and words[0] not in ("-c", "-m"):  # interpreter flags: it is running already
        words = words[1:]
    first, *rest = words
    if first == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    elif first == "-m":
        sys.argv, sys.path[0] = rest, request["folder"]
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = [first, *rest], str(Path(first).parent)
        runpy.run_path(first, run_name="__main__")


def run_and_exit(request: dict[str, Any], received: list[int], python: str) -> None:
    """`become`, and exit with the status that an interpreter would have."""
    status = 1
    try:
        become(request, received, python)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
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


def serve(path: str, modules: list[str]) -> None:
    """Import the modules, then fork for each client, until killed. A fork ends with its client."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(DESCRIPTORS)
    sys.meta_path.insert(0, without_ray := WithoutRay())
    for module in modules:
        importlib.import_module(module)
    sys.meta_path.remove(without_ray)
    gc.collect()
    gc.freeze()  # pages that the collector does not write to stay shared
    clients: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listener, *clients.values()], [], [], POLL_SECONDS)
        if listener in ready:
            connection, _ = listener.accept()
            size, received, _, _ = socket.recv_fds(connection, 8, DESCRIPTORS)
            request = json.loads(receive(connection, int.from_bytes(size, "big")))
            pid = os.fork()
            if pid == 0:
                for other in (listener, connection, *clients.values()):
                    other.close()
                os.setsid()
                run_and_exit(request, received, str(Path(path).with_name("python")))
            for descriptor in received:
                os.close(descriptor)
            connection.sendall(pid.to_bytes(8, "big"))
            clients[pid] = connection
        for pid, connection in list(clients.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(OSError):
                    connection.sendall((code if code >= 0 else 128 - code).to_bytes(8, "big"))
                clients.pop(pid).close()
            elif connection in ready:  # a client sends nothing after its request, so it was killed
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        sys.exit(client(sys.argv[2], sys.argv[3:]))
    serve(sys.argv[1], sys.argv[2:])
