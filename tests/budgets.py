"""How many examples property tests try, by kind. `make test-all` tries 20 times as many, `make test-quick` half."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterable
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings

EXAMPLES = {
    "usual": 50,  # what a test without a kind of its own gets
    "any text": 300,  # readers and verifiers of hostile text: microseconds an example
    "built text": 150,  # an expression or trace is built, and read again
    "puzzles": 30,  # a puzzle or a game is drawn and solved
    "costly": 10,  # tenths of a second an example
}
TIMES = {"quick": 1 / 2, "usual": 1, "all": 20}
ALL = os.environ.get("TEST_EXAMPLES") == "all"
T = TypeVar("T")


def examples(kind: str, **more: Any) -> settings:
    """The decorator of a property test of this kind."""
    times = TIMES[os.environ.get("TEST_EXAMPLES", "usual")]
    return settings(max_examples=max(5, round(EXAMPLES[kind] * times)), **more)


def some(cases: Iterable[T], share: float) -> list[T]:
    """A share of many costly cases, drawn with TEST_SEED; `make test-all` tries all."""
    every = list(cases)
    return every if ALL else random.sample(every, math.ceil(share * len(every)))


def load() -> None:
    """Set what holds for all property tests: the time of an example says how busy the machine is."""
    settings.register_profile(
        "crosszero", parent=examples("usual"), deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("crosszero")
