"""How many programs a second run in sandboxes, beside plain processes that have no sandbox.

    python -m tasks.sandbox_speed --programs 100        # half a minute

The plain processes run the same short program, written here, for comparison alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from contracts.errors import UserError, run_command
from tasks import sandbox
from tasks.sandbox import Call

PROGRAM = "def f(x): return x + 1"


def rate(one: Callable[[int], object], count: int, workers: int) -> float:
    """Calls a second.

    Args:
        one: what is called, with a number.
        count: how often.
        workers: at the same time.
    """
    start = time.perf_counter()
    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(one, range(count)))
    return count / (time.perf_counter() - start)


def main() -> None:
    """Command line: [--programs N]."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=100)
    programs = parser.parse_args().programs
    if why := sandbox.refusal():
        raise UserError(f"there is no sandbox to measure: {why}")
    cores = len(os.sched_getaffinity(0))
    sandboxed = rate(lambda number: sandbox.run(PROGRAM, "f", [Call((number,))]), programs, cores)
    plain = rate(lambda _: subprocess.run([sys.executable, "-I", "-S", "-c", PROGRAM], check=True), programs, cores)
    print(
        f"{programs} programs on {cores} cores: {sandboxed:.1f} a second in sandboxes, {plain:.1f} in plain processes"
    )


if __name__ == "__main__":
    run_command(main)
