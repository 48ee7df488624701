"""Waiting for an event. How long one takes says how busy the machine is, so all have the same long limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LIMIT = 300.0  # seconds; whatever takes them is stuck
WORKFLOW_LIMIT = 3600.0  # the same of a workflow, or of a cluster of Ray
Value = TypeVar("Value")


def wait_until(condition: Callable[[], Value]) -> Value:
    """The first value of the condition that is true."""
    end = time.monotonic() + LIMIT
    while not (value := condition()):
        assert time.monotonic() < end, "what the test waits for has not happened"
        time.sleep(0.02)
    return value
