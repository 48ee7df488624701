"""Programs per second: in warm sandboxes, in sandboxes of their own, in firejail, and in plain processes, in one run.

Run with `pytest tests/performance/test_sandbox_speed.py --benchmark-only`: half a minute on two idle cores. All run the
same runner (tasks/sandbox/runner.py) on the same job; the program is written here, so that it may run unprotected, too.
firejail (Debian: apt-get install firejail) is measured where it is installed, and is used for nothing else.
"""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tasks import sandbox
from tasks.sandbox import Limits, bubblewrap, single_use, warm_pool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sandbox.why_not_warm() is not None, reason=f"no warm sandbox: {sandbox.why_not_warm()}"),
]
CORES = len(os.sched_getaffinity(0))
IMPORTS = "import collections, functools, heapq, itertools, math, random, re, string\nfrom typing import *\n"
PROGRAMS = {"one line": "def f(x): return x + 1", "with imports": f"{IMPORTS}def f(x): return x + 1"}
PYTHON = [getattr(sys, "_base_executable", sys.executable), "-I", "-S", "-B"]
FIREJAIL = ["firejail", "--quiet", "--noprofile", "--net=none", "--caps.drop=all", "--nonewprivs", "--seccomp",
            "--private-dev", "--private-tmp", "--"]  # fmt: skip


def job(program, number):
    call = {"program": program, "function": "f", "calls": [[[number], {}]]}
    return json.dumps({**call, "nonce": "", **Limits()._asdict()}).encode()


def warm(body):
    return warm_pool.POOL.run(body, Limits().output, 60.0).results


def cold(body):
    return single_use.run(body, Limits().output, 60.0).results


def plain(body):
    done = subprocess.run([*PYTHON, str(bubblewrap.RUNNER)], input=body, stdout=subprocess.PIPE, check=True)
    return done.stdout


def firejail(body):
    """With the home folder in view, where Python may be installed."""
    command = [*FIREJAIL, *PYTHON, "-c", bubblewrap.RUNNER.read_text(encoding="utf-8")]
    return subprocess.run(command, input=body, stdout=subprocess.PIPE, check=True).stdout


@pytest.mark.parametrize("kind", PROGRAMS)
@pytest.mark.parametrize(("way", "count"), [(warm, 100), (cold, 20), (plain, 40), (firejail, 20)])
def test_programs_per_second(benchmark, way, count, kind):
    if way is firejail and shutil.which("firejail") is None:
        pytest.skip("firejail is not installed")
    benchmark.group = f"a program {kind}"
    jobs = [job(PROGRAMS[kind], number) for number in range(count)]
    with ThreadPoolExecutor(CORES) as threads:
        results = benchmark.pedantic(lambda: list(threads.map(way, jobs)), rounds=3, warmup_rounds=1)
    benchmark.extra_info["programs per second"] = round(count / benchmark.stats["min"], 1)
    assert [text.decode().split("\n")[2] for text in results] == [f"={number + 1}" for number in range(count)]


def test_a_warm_sandbox_is_several_times_as_fast(benchmark):
    """Ratios of medians in one run, one program at a time: on a busy machine both ways wait."""
    body = job(PROGRAMS["with imports"], 1)
    seconds = {way: [] for way in (warm, cold)}

    def alternate():
        for way, taken in seconds.items():
            start = os.times().elapsed
            for _ in range(10):
                way(body)
            taken.append(os.times().elapsed - start)

    benchmark.pedantic(alternate, rounds=5, warmup_rounds=1)
    ratio = sorted(seconds[cold])[3] / sorted(seconds[warm])[3]
    benchmark.extra_info["cold / warm"] = round(ratio, 1)
    assert ratio > 2
