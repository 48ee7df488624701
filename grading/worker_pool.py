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
FIRST_PASS = 0.2  # share of a pair's CPU time that it may take at first; what needs more is tried again, alone
SECONDS_BETWEEN_LINES = 10.0
LOST = ""  # in place of a verdict: the pair ended its judge's process, by time or memory


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
            env={
                **os.environ,
                "PYTHONPATH": path,
                "OMP_NUM_THREADS": "1",
                "PYTHONHASHSEED": "0",  # sympy's results may depend on the order of sets: the same in every worker
                "MALLOC_MMAP_THRESHOLD_": "131072",  # long texts' memory goes back: a judge's child inherits the rest
            },
        )  # fmt: skip

    def run(self, judge: str, pairs: Sequence[Pair], deadline_s: float, *, fresh: bool = False) -> list[str]:
        """Verdicts of the pairs, in order, and LOST for those that could not be judged.

        Args:
            judge: dotted name of the judge.
            pairs: what to judge.
            deadline_s: seconds of CPU time for one pair.
            fresh: whether to judge in a new child, whose memory and caches no other pair has filled.

        Raises:
            OSError, ValueError: the worker itself died.
        """
        request = json.dumps({"judge": judge, "pairs": pairs, "deadline_s": deadline_s, "fresh": fresh}).encode()
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
    """Reports on stderr every ten seconds."""

    def __init__(self, wanted: int) -> None:
        """Follow this many pairs."""
        self._wanted, self._done, self._lost = wanted, 0, 0
        self._shown = time.monotonic()
        self._lock = threading.Lock()

    def add(self, judged: int, lost: int) -> None:
        """Count judged pairs; write the line if it is time to."""
        with self._lock:
            self._done += judged
            self._lost += lost
            if time.monotonic() - self._shown > SECONDS_BETWEEN_LINES:
                self._shown = time.monotonic()
                print(f"grade: {self._done}/{self._wanted} pairs judged, {self._lost} without verdict", file=sys.stderr)


class Pool:
    """Workers that live as long as this process; a worker that dies is replaced, and its chunk tried once more."""

    def __init__(self) -> None:
        """Start with no workers; they come with the first pairs."""
        self._workers: list[Worker] = []
        self._lock = threading.Lock()

    def run(self, judge: str, pairs: Sequence[Pair], *, deadline_s: float, workers: int | None) -> list[str]:
        """Verdicts of the pairs, in order.

        Each pair has a fifth of its time at first. What ends its child, by time or memory, is tried again with all
        of it, alone in a new child. So a verdict depends neither on the other pairs nor on the load or the number of
        workers (a pair that needs almost exactly the whole time aside).

        Args:
            judge: dotted name of the judge (tasks.task.Grader).
            pairs: what to judge.
            deadline_s: seconds of the judge's CPU time for one pair; past it the pair is `ungradable`.
            workers: how many processes; by default one for each CPU core.
        """
        everything = range(len(pairs))
        with self._lock:
            chunks = [everything[start : start + CHUNK] for start in everything[::CHUNK]]
            verdicts = self._pass(judge, pairs, chunks, FIRST_PASS * deadline_s, workers, fresh=False)
            lost = [range(index, index + 1) for index in everything if verdicts[index] == LOST]
            again = self._pass(judge, pairs, lost, deadline_s, workers, fresh=True)
        return [again.get(index) or verdict or "ungradable" for index, verdict in verdicts.items()]

    def _pass(
        self, judge: str, pairs: Sequence[Pair], chunks: Sequence[range], deadline_s: float, workers: int | None,
        *, fresh: bool,
    ) -> dict[int, str]:  # fmt: skip
        """The verdicts of the pairs in the chunks, by place, LOST included."""
        todo: queue.SimpleQueue[range] = queue.SimpleQueue()
        for chunk in chunks:
            todo.put(chunk)
        verdicts = {index: LOST for chunk in chunks for index in chunk}
        failures: list[BaseException] = []
        progress = Progress(len(verdicts))

        def serve(slot: int) -> None:
            try:
                while True:
                    chunk = todo.get_nowait()
                    chosen = pairs[chunk.start : chunk.stop]
                    judged = self._run_chunk(slot, judge, chosen, deadline_s, fresh=fresh)
                    verdicts.update(zip(chunk, judged, strict=True))
                    progress.add(len(judged), judged.count(LOST))
            except queue.Empty:
                return
            except BaseException as failure:
                failures.append(failure)

        count = min(workers or len(os.sched_getaffinity(0)), len(chunks))
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

    def _run_chunk(self, slot: int, judge: str, pairs: Sequence[Pair], deadline_s: float, *, fresh: bool) -> list[str]:
        try:
            return self._workers[slot].run(judge, pairs, deadline_s, fresh=fresh)
        except (OSError, ValueError):
            self._workers[slot].close()
            self._workers[slot] = Worker()
        try:
            return self._workers[slot].run(judge, pairs, deadline_s, fresh=fresh)
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
