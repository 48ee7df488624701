"""What waits inside a warm sandbox (tasks.sandbox.warm_pool): forks a process with its own namespaces per program.

It imports nothing of this project, which is not there. Its standard input is a socket. For each program a message
brings three pipes: the job, the results and the errors of tasks.sandbox.runner. An attendant, forked here, enters new
namespaces and forks the program's process, which gives up everything but its pipes. The next message ends the program,
whatever it does; the attendant kills it, waits until it is gone, and says so. When the socket ends, everything ends.
"""

# Not used here: what programs often import, imported once for all of them
import bisect  # noqa: F401
import collections  # noqa: F401
import ctypes
import datetime  # noqa: F401
import functools  # noqa: F401
import gc
import heapq  # noqa: F401
import itertools  # noqa: F401
import json  # noqa: F401
import math  # noqa: F401
import operator  # noqa: F401
import os
import pathlib
import random  # noqa: F401
import re  # noqa: F401
import resource
import signal
import socket
import string  # noqa: F401
import symtable  # noqa: F401
import typing

RUNNER = pathlib.Path("/python/runner.py")
MESSAGE = 16  # bytes, more than any
MOST_FILES = 64  # open at once
# linux/sched.h: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
CAPABILITIES = 0x20080522  # _LINUX_CAPABILITY_VERSION_3 in linux/capability.h
SET_NO_NEW_PRIVS = 38  # linux/prctl.h
NOTHING = ctypes.c_ulong(0)
LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Serve until the socket ends."""
    channel = socket.socket(fileno=0)
    runner = compile(RUNNER.read_text(encoding="utf-8"), str(RUNNER), "exec")
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_FILES, MOST_FILES))
    gc.freeze()
    channel.send(b"ready")
    while True:
        message, pipes, _, _ = socket.recv_fds(channel, MESSAGE, 3)
        if not message or len(pipes) != 3:
            return
        attendant = os.fork()
        if attendant == 0:
            try:
                attend(channel, pipes, runner)
            finally:
                os._exit(0)
        for pipe in pipes:
            os.close(pipe)
        os.waitpid(attendant, 0)


def attend(channel: socket.socket, pipes: list[int], runner: typing.Any) -> None:
    """Start the program's process; kill it at the next message, and answer when it is gone."""
    program = None
    try:
        checked(LIBC.unshare(NAMESPACES), "unshare")
        program = os.fork()
        if program == 0:
            confine(pipes)
            exec(runner, {"__name__": "__main__"})
    except OSError as error:
        os.write(2 if program == 0 else pipes[2], str(error).encode())
    finally:
        if program == 0:
            os._exit(1)
    for pipe in pipes:
        os.close(pipe)
    channel.recv(MESSAGE)
    if program:
        os.kill(program, signal.SIGKILL)
        os.waitpid(program, 0)
    channel.send(b"ended")


def confine(pipes: list[int]) -> None:
    """Give up the terminal's group, all files but the pipes, and all capabilities; the runner gives up system calls."""
    os.setsid()  # else a signal to the group of processes would reach the fork server
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
    os.closerange(3, MOST_FILES)
    header, none = (ctypes.c_uint32 * 2)(CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    checked(LIBC.capset(header, none), "capset")
    checked(LIBC.prctl(SET_NO_NEW_PRIVS, ctypes.c_ulong(1), NOTHING, NOTHING, NOTHING), "no_new_privs")


def checked(returned: int, name: str) -> None:
    """Raise the error that a function of libc reports."""
    if returned != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


main()
