"""Warm sandboxes: Python has started in them, so that a program costs two forks and its namespaces.

In each a fork server (tasks.sandbox.fork_server) waits. For a program it forks a process with namespaces, capabilities
and a seccomp filter of its own, which ends before the next one starts. The server never reads a job or a result: they
go through pipes between this process and the program's. So it holds nothing of a program when it forks for the next.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess

from tasks.sandbox import bubblewrap, pipes

END_SECONDS = 60.0  # for a killed program to be gone, on a busy machine
READY, RUN, END, ENDED = b"ready", b"run", b"end", b"ended"  # messages; the fork server has the same
MESSAGE = 16  # bytes, more than any


class Lost(Exception):
    """A warm sandbox did not start, or ended; the program is not to blame."""


class WarmSandbox:
    """One fork server in its sandbox. It ends as soon as its socket is closed, as by the death of this process."""

    def __init__(self) -> None:
        """Start it.

        Raises:
            Lost: it does not start.
        """
        self._channel, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(pipes.SETUP_SECONDS)
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with inside:
            try:  # without --die-with-parent, which means the thread that started it
                self._process = bubblewrap.start(bubblewrap.FORK_SERVER, stdin=inside.fileno(), **output)
            except OSError as error:
                self._channel.close()
                raise Lost(str(error)) from error
        if self._answer() != READY:
            raise Lost(self.close() or "it did not answer")

    def run(self, job: bytes, most: int, wall_s: float) -> pipes.ProcessOutput:
        """As tasks.sandbox.single_use.run.

        Raises:
            Lost: the sandbox ended, or started no process for the program.
        """
        streams, theirs = _pipes()
        try:
            with streams.job, streams.results, streams.errors:
                try:
                    socket.send_fds(self._channel, [RUN], theirs)
                except OSError as error:
                    raise Lost(str(error)) from error
                finally:
                    for pipe in theirs:
                        os.close(pipe)
                output = pipes.exchange(streams, job, most, wall_s)
        finally:
            ended = self._end()
        if not ended or not output.ready:
            raise Lost(output.errors.decode("utf-8", "replace") or "the fork server ended")
        return output

    def _end(self) -> bool:
        """End the program's process; whether it is gone and the fork server is there."""
        with contextlib.suppress(OSError):
            self._channel.settimeout(END_SECONDS)
            self._channel.send(END)
        return self._answer() == ENDED

    def _answer(self) -> bytes:
        try:
            return self._channel.recv(MESSAGE)
        except OSError:
            return b""

    def close(self) -> str:
        """End the fork server and whatever it runs; returns what it or bubblewrap wrote."""
        self._channel.close()
        try:
            output, _ = self._process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            output = b""
        return " ".join(output.decode("utf-8", "replace").split())[:200]


def _pipes() -> tuple[pipes.Streams, list[int]]:
    """Three pipes: this process's ends, and the program's."""
    (job_read, job), (results, results_write), (errors, errors_write) = os.pipe(), os.pipe(), os.pipe()
    ours = pipes.Streams(os.fdopen(job, "wb", 0), os.fdopen(results, "rb", 0), os.fdopen(errors, "rb", 0))
    return ours, [job_read, results_write, errors_write]


class Pool:
    """Warm sandboxes that live as long as this process: as many as programs ran at the same time."""

    def __init__(self) -> None:
        """Start with none; they come with the first programs."""
        self._idle: list[WarmSandbox] = []

    def run(self, job: bytes, most: int, wall_s: float) -> pipes.ProcessOutput:
        """As tasks.sandbox.single_use.run, in a warm sandbox that runs nothing else meanwhile.

        Raises:
            Lost: the sandbox did not start or ended; the next call starts another.
        """
        try:
            warm = self._idle.pop()
        except IndexError:
            warm = WarmSandbox()
        try:
            output = warm.run(job, most, wall_s)
        except BaseException:
            warm.close()
            raise
        self._idle.append(warm)
        return output

    def close(self) -> None:
        """End all that run nothing."""
        while self._idle:
            self._idle.pop().close()

    def forget(self) -> None:
        """In a forked process: those of the parent stay the parent's."""
        self._idle = []


POOL = Pool()
atexit.register(POOL.close)
os.register_at_fork(after_in_child=lambda: POOL.forget())
