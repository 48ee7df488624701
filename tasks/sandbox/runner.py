"""What runs a program inside a sandbox (tasks.sandbox): limits itself, and writes what the program's calls return.

It imports nothing of this project, which is not there. Its lines: `ready`, then `runnable` or `broken`, then for each
call `=` and the value as JSON or `!`, then `done`. Whatever the program does to this process, it can only change what
its own calls are said to return.
"""

import json
import os
import resource
import sys


def main() -> None:
    """Take a job from standard input, and end this process."""
    results = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what the program prints is read and thrown away
    results.write("ready\n")
    job = json.loads(sys.stdin.buffer.read())
    sys.stdin.close()
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
    names = {"__name__": "program"}
    try:
        exec(compile(job["program"], "program", "exec"), names)
        eval(job["function"], names)
    except BaseException:
        results.write("broken\n")
        results.flush()
        os._exit(1)
    results.write("runnable\n")
    for args, kwargs in job["calls"]:
        try:
            line = "=" + json.dumps(eval(job["function"], names)(*args, **kwargs))
        except Exception:
            line = "!"
        results.write(line + "\n")
    results.write("done\n")
    results.flush()
    os._exit(0)


main()
