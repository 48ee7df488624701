"""What runs a program inside a sandbox (tasks.sandbox): limits itself, and writes what the program's calls return.

It imports nothing of this project, which is not there. Its lines: `ready`, then `broken`, or `runnable` with the job's
nonce and for each call `=` and the value as JSON or `!`, then `done`. A program is runnable if its text binds the
function's name, which is checked before it runs, and if it has come to its end and the function can be called. Until
then the nonce is in a pipe and in no object, so that a line which the program writes itself is no such line.
"""

import ctypes
import json
import os
import resource
import symtable
import sys
import typing

SET_SECCOMP, FILTER = 22, ctypes.c_ulong(2)  # linux/prctl.h, linux/seccomp.h


class Rules(ctypes.Structure):
    """struct sock_fprog of linux/filter.h."""

    _fields_ = (("count", ctypes.c_ushort), ("lines", ctypes.c_void_p))


def main() -> None:
    """Take a job from standard input, and end this process; the filter is the last argument, in hexadecimal digits."""
    results = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what the program prints is read and thrown away
    job = json.loads(sys.stdin.buffer.read())
    sys.stdin.close()
    nonce, stored = os.pipe()
    os.write(stored, job.pop("nonce").encode())
    os.close(stored)
    limit(job)
    if len(sys.argv) > 1:
        install(bytes.fromhex(sys.argv[-1]))
    results.write("ready\n")
    # Local, because the program may put its own in their places
    names: dict[str, typing.Any] = {"__name__": "program"}
    function, evaluate, is_callable = job["function"], eval, callable
    read, write, leave = os.read, results.write, os._exit
    try:
        if not binds(job["program"], function):
            raise NameError(function)
        exec(compile(job["program"], "program", "exec"), names)
        if not is_callable(evaluate(function, names)):
            raise TypeError(function)
    except BaseException:
        write("broken\n")
    else:
        write(f"runnable {read(nonce, 99).decode()}\n")
        for args, kwargs in job["calls"]:
            try:
                line = "=" + json.dumps(evaluate(function, names)(*args, **kwargs))
            except Exception:
                line = "!"
            write(line + "\n")
        write("done\n")
    results.flush()
    leave(0)


def binds(program: str, function: str) -> bool:
    """Whether a program defines, assigns or imports the name at its top level that a function begins with."""
    name = function.partition(".")[0].partition("(")[0]
    table = symtable.symtable(program, "program", "exec")
    if name not in table.get_identifiers():
        return False
    symbol = table.lookup(name)
    return symbol.is_assigned() or symbol.is_imported()


def limit(job: dict[str, typing.Any]) -> None:
    """Set the limits of this process."""
    for name, value in (
        ("RLIMIT_CPU", job["cpu_s"]),
        ("RLIMIT_AS", job["memory"]),
        ("RLIMIT_NOFILE", job["files"]),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_NPROC", 1),
        ("RLIMIT_MEMLOCK", 0),
        ("RLIMIT_MSGQUEUE", 0),
    ):
        resource.setrlimit(getattr(resource, name), (value, value))


def install(filter_lines: bytes) -> None:
    """Give up the system calls that the filter (tasks.sandbox.seccomp) does not allow."""
    lines = ctypes.create_string_buffer(filter_lines, len(filter_lines))
    rules = Rules(len(filter_lines) // 8, ctypes.cast(lines, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(rules), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


main()
