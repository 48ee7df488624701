"""A pool of worker processes that run judges on pairs of gold and answer, and can be killed."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CHUNK = 8  # pairs per message: an easy pair costs 0.3 ms or more, a message about 0.1 ms
# Once all workers together have spent this many seconds on pairs that were not judged in time, the other pairs have the
# short deadline, so that thousands of hanging pairs end within the hour.
PATIENCE_S = 600.0
SHORT_DEADLINE_S = 0.5  # twice math-verify's 95th percentile on 519 hard pairs
SECONDS_BETWEEN_LINES = 10.0


class Pair(NamedTuple):
    """What a judge compares; `meta` is JSON or None, so that pairs can be hashed."""

    gold: str
    answer: str
    meta: str | None


class Worker:
    """One `grading.sandboxed_worker` process and the pipes to it."""

    def __init__(self) -> None:
        """Start the process."""
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "grading.sandboxed_worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    def run(self, judge: str, pairs: Sequence[Pair], deadline_s: float) -> list[str]:
        """Verdicts of the pairs, in order; raises OSError or ValueError if the worker itself died."""
        request = json.dumps({"judge": judge, "pairs": pairs, "deadline_s": deadline_s}).encode()
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(struct.pack("<Q", len(request)) + request)
        self._process.stdin.flush()
        verdicts: list[str] = json.loads(self._process.stdout.readline())
        return verdicts

    def close(self) -> None:
        """End the process: it exits when its input ends, and is killed if it does not."""
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class Progress:
    """Reports on stderr every ten seconds, and counts the seconds spent on pairs that were not judged in time."""

    def __init__(self, wanted: int) -> None:
        """Follow this many pairs."""
        self._wanted, self._done, self._ungradable, self._lost = wanted, 0, 0, 0.0
        self._shown = time.monotonic()
        self._lock = threading.Lock()

    def deadline(self, deadline_s: float) -> float:
        """The deadline of the next pairs."""
        return deadline_s if self._lost < PATIENCE_S else min(deadline_s, SHORT_DEADLINE_S)

    def add(self, judged: int, ungradable: int, seconds: float) -> None:
        """Count judged pairs; write the line if it is time to."""
        with self._lock:
            self._done += judged
            self._ungradable += ungradable
            patient = self._lost < PATIENCE_S
            self._lost += seconds if ungradable else 0.0
            if patient and self._lost >= PATIENCE_S:
                print(
                    f"grade: pairs that could not be judged took {self._lost:.0f} s; from here each has "
                    f"{SHORT_DEADLINE_S} s",
                    file=sys.stderr,
                )
            if time.monotonic() - self._shown > SECONDS_BETWEEN_LINES:
                self._shown = time.monotonic()
                print(
                    f"grade: {self._done}/{self._wanted} pairs judged, {self._ungradable} of them ungradable",
                    file=sys.stderr,
                )


class Pool:
    """Workers that live as long as this process; a worker that dies is replaced, and its chunk tried once more."""

    def __init__(self) -> None:
        """Start with no workers; they come with the first pairs."""
        self._workers: list[Worker] = []
        self._lock = threading.Lock()

    def run(self, judge: str, pairs: Sequence[Pair], *, deadline_s: float, workers: int | None) -> list[str]:
        """Verdicts of the pairs, in order.

        Args:
            judge: dotted name of the judge (tasks.task.Grader).
            pairs: what to judge.
            deadline_s: seconds of wall time for one pair; past it the pair is `ungradable`.
            workers: how many processes; by default one for each CPU core.
        """
        chunks = [range(start, min(start + CHUNK, len(pairs))) for start in range(0, len(pairs), CHUNK)]
        todo: queue.SimpleQueue[range] = queue.SimpleQueue()
        for chunk in chunks:
            todo.put(chunk)
        verdicts = ["ungradable"] * len(pairs)
        failures: list[BaseException] = []
        progress = Progress(len(pairs))

        def serve(slot: int) -> None:
            try:
                while True:
                    chunk = todo.get_nowait()
                    started, deadline = time.monotonic(), progress.deadline(deadline_s)
                    judged = self._run_chunk(slot, judge, pairs[chunk.start : chunk.stop], deadline)
                    verdicts[chunk.start : chunk.stop] = judged
                    progress.add(len(judged), judged.count("ungradable"), time.monotonic() - started)
            except queue.Empty:
                return
            except BaseException as failure:
                failures.append(failure)

        with self._lock:
            count = max(1, min(workers or len(os.sched_getaffinity(0)), len(chunks)))
            while len(self._workers) < count:
                self._workers.append(Worker())
            threads = [threading.Thread(target=serve, args=(slot,), daemon=True) for slot in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]
        return verdicts

    def _run_chunk(self, slot: int, judge: str, pairs: Sequence[Pair], deadline_s: float) -> list[str]:
        try:
            return self._workers[slot].run(judge, pairs, deadline_s)
        except (OSError, ValueError):
            self._workers[slot].close()
            self._workers[slot] = Worker()
        try:
            return self._workers[slot].run(judge, pairs, deadline_s)
        except (OSError, ValueError) as error:
            raise RuntimeError("a grading worker ended twice on the same pairs; its own message is above") from error

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            for worker in self._workers:
                worker.close()
            self._workers.clear()


POOL = Pool()
atexit.register(POOL.close)
