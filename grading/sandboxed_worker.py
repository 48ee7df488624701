"""A worker: runs a judge on pairs in a forked child, which the kernel kills when one pair passes its limit of CPU time.

Run by grading.worker_pool as `python -m grading.sandboxed_worker`: JSON requests on standard input, each after its
length (8 bytes, little endian), and one JSON reply per line on standard output. A judge is imported once, here; a child
that was killed is replaced by another fork in milliseconds. The child has bounded memory, cannot write files, and dies
with its parent. CPU time and not wall time, so that a busy machine changes no verdict.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import resource
import select
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from grading.worker_pool import LOST
from system.subreaper import die_with_parent

Judge = Callable[[str, str, dict[str, Any] | None], str]  # (gold, answer, meta) to correct, wrong or ungradable

MEMORY = 1 << 30  # bytes of address space for one child; sympy and math-verify need about 0.3 GiB
CODES = {b"c": "correct", b"w": "wrong", b"u": "ungradable"}
LENGTH = struct.Struct("<Q")


def load(name: str) -> Judge:
    """The judge of this dotted name."""
    module, _, function = name.rpartition(".")
    judge: Judge = getattr(importlib.import_module(module), function)
    return judge


def warm_up(name: str) -> None:
    """Import a judge and fill its caches, once for all later forks."""
    module = importlib.import_module(name.rpartition(".")[0])
    if hasattr(module, "warm_up"):
        module.warm_up()


def _limit_child() -> None:
    for limit, value in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    die_with_parent()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


def _serve_child(requests: BinaryIO, replies: int) -> None:
    """In the child: read chunks of pairs, write one byte per pair as soon as it is judged."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the child, also in the midst of a long operation in C
    while header := requests.read(LENGTH.size):
        chunk = json.loads(requests.read(LENGTH.unpack(header)[0]))
        judge = load(chunk["judge"])
        for gold, answer, meta in chunk["pairs"]:
            signal.setitimer(signal.ITIMER_PROF, chunk["deadline_s"])
            try:
                verdict = judge(gold, answer, json.loads(meta) if meta else None)
            except MemoryError:
                return
            except Exception:  # what sympy raises on model-written text has no common base; the pair is what is bad
                verdict = "ungradable"
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.write(replies, verdict[0].encode())


class Child:
    """A forked process that runs judges; `kill` ends it whatever it is doing."""

    def __init__(self) -> None:
        """Fork, with a pipe for requests and one for replies."""
        request_end, self._requests = os.pipe()
        self.replies, reply_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._requests)
                os.close(self.replies)
                _limit_child()
                with os.fdopen(request_end, "rb") as requests:
                    _serve_child(requests, reply_end)
            finally:
                os._exit(0)
        os.close(request_end)
        os.close(reply_end)

    def send(self, chunk: dict[str, Any]) -> None:
        """Hand over a chunk of pairs."""
        body = memoryview(json.dumps(chunk).encode())
        os.write(self._requests, LENGTH.pack(len(body)))
        while body:
            body = body[os.write(self._requests, body) :]

    def kill(self) -> None:
        """End the process and free its pipes."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._requests)
        os.close(self.replies)


def run_chunk(child: Child, request: dict[str, Any]) -> tuple[Child, list[str]]:
    """Verdicts of a request's pairs; the pair that ends a child is LOST, and a new child resumes after it."""
    pairs = request["pairs"]
    verdicts: list[str] = []
    while len(verdicts) < len(pairs):
        with contextlib.suppress(BrokenPipeError):  # the child died: reading from it says so below
            child.send({**request, "pairs": pairs[len(verdicts) :]})
        while len(verdicts) < len(pairs):
            ready, _, _ = select.select([child.replies, sys.stdin], [], [])
            if sys.stdin in ready:  # nothing is sent while a chunk is judged: whoever asked is gone
                child.kill()
                sys.exit(1)
            codes = os.read(child.replies, 4096)
            if not codes:
                child.kill()
                child = Child()
                verdicts.append(LOST)
                break
            verdicts.extend(CODES[bytes([code])] for code in codes)
    return child, verdicts


def main() -> None:
    """Serve requests until standard input ends."""
    logging.disable(logging.CRITICAL)  # math-verify logs every time that its time-outs are off
    child: Child | None = None
    warm: set[str] = set()
    # Unbuffered, so that `select` sees whether anything is left
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as requests:
        while header := requests.read(LENGTH.size):
            (size,) = LENGTH.unpack(header)
            body = b""
            while len(body) < size:
                body += requests.read(size - len(body)) or sys.exit(1)
            request = json.loads(body)
            if child is None or request["judge"] not in warm or request["fresh"]:
                if child:
                    child.kill()
                if request["judge"] not in warm:
                    warm_up(request["judge"])
                    warm.add(request["judge"])
                child = Child()
            child, verdicts = run_chunk(child, request)
            sys.stdout.write(json.dumps(verdicts) + "\n")
            sys.stdout.flush()
            del body, request  # may be long, and the next child would inherit them
    if child:
        child.kill()


if __name__ == "__main__":
    main()
