"""A worker that judges pairs in a forked child, which it kills when one pair passes its deadline.

Run by grading.worker_pool as `python -m grading.sandboxed_worker`: JSON requests on standard input, each after its
length (8 bytes, little endian), and one JSON reply per line on standard output. The judges are imported once, here; a
child that was killed is replaced by another fork in milliseconds. The child has bounded memory, cannot write files, and
dies with its parent.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import struct
import sys
from typing import Any, BinaryIO

from contracts.job_lifetime import die_with_parent
from grading.backends import JUDGES, warm_up

MEMORY = 3 << 30  # bytes of address space for one child; sympy and math-verify need about 0.3 GiB
CODES = {b"c": "correct", b"w": "wrong", b"u": "ungradable"}
LENGTH = struct.Struct("<Q")


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
    while header := requests.read(LENGTH.size):
        chunk = json.loads(requests.read(LENGTH.unpack(header)[0]))
        judge = JUDGES[chunk["judge"]]
        for gold, answer, meta in chunk["pairs"]:
            try:
                verdict = judge(gold, answer, json.loads(meta) if meta else None)
            except (MemoryError, RecursionError):
                verdict = "ungradable"
            except Exception:  # what sympy raises on model-written text has no common base; the pair is what is bad
                verdict = "ungradable"
            os.write(replies, verdict[0].encode())


class Child:
    """A forked process that judges; `kill` ends it whatever it is doing."""

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


def judge_chunk(child: Child, request: dict[str, Any]) -> tuple[Child, list[str]]:
    """Judge every pair of a request; the pair at which a child hangs or dies is ungradable, and the rest goes on."""
    pairs, deadline = request["pairs"], request["deadline_s"]
    verdicts: list[str] = []
    while len(verdicts) < len(pairs):
        with contextlib.suppress(BrokenPipeError):  # the child died: reading from it says so below
            child.send({"judge": request["judge"], "pairs": pairs[len(verdicts) :]})
        while len(verdicts) < len(pairs):
            ready, _, _ = select.select([child.replies, sys.stdin], [], [], deadline)
            if sys.stdin in ready:  # nothing is sent while a chunk is judged: whoever asked is gone
                child.kill()
                sys.exit(1)
            codes = os.read(child.replies, 4096) if ready else b""
            if not codes:  # past the deadline, or dead
                child.kill()
                child = Child()
                verdicts.append("ungradable")
                break
            verdicts.extend(CODES[bytes([code])] for code in codes)
    return child, verdicts


def main() -> None:
    """Serve requests until standard input ends."""
    warm_up()
    child = Child()
    # Unbuffered, so that `select` sees whether anything is left
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as requests:
        while header := requests.read(LENGTH.size):
            (size,) = LENGTH.unpack(header)
            body = b""
            while len(body) < size:
                body += requests.read(size - len(body)) or sys.exit(1)
            child, verdicts = judge_chunk(child, json.loads(body))
            sys.stdout.write(json.dumps(verdicts) + "\n")
            sys.stdout.flush()
    child.kill()


if __name__ == "__main__":
    main()
