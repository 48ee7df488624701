"""The side of a fork server's clients (system/fork_server.py): they have it run an interpreter's arguments in a fork.

`python system/fork_client.py SOCKET ARGUMENTS…` is started in place of an interpreter, so it imports little.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

DESCRIPTORS = 250  # that one message may carry; linux/include/net/scm.h has 253
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


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


def exit_status(connection: socket.socket) -> int:
    """The exit status of what was asked for; signal handlers run while it is waited for."""
    signalled, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)  # one just before the wait does not interrupt it
    watched: list[Any] = [connection, signalled]
    while connection not in select.select(watched, [], [])[0]:
        os.read(signalled, 1)
    try:
        return int.from_bytes(receive(connection, 8), "big")
    except EOFError:  # the server was killed, and so was the fork
        return shell_status(-signal.SIGKILL)


def shell_status(code: int) -> int:
    """The exit status that a shell shows for a process that ended by a signal."""
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(run_in_fork(sys.argv[1], sys.argv[2:]))
