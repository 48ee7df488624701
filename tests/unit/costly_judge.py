"""A judge whose cost in CPU time and memory the gold answer states, to test limits with."""

from __future__ import annotations

import time
from typing import Any

kept: list[bytes] = []  # memory that stays allocated, as that of caches does


def judge(gold: str, answer: str, meta: dict[str, Any] | None = None) -> str:
    """`cpu 0.3` takes 0.3 s of CPU time, `memory 600` keeps 600 MiB; correct if the answer is `yes`."""
    what, _, amount = gold.partition(" ")
    started = time.process_time()
    while what == "cpu" and time.process_time() - started < float(amount):
        pass
    if what == "memory":
        kept.append(bytes(int(amount) << 20))
    return "correct" if answer == "yes" else "wrong"
