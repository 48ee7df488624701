"""The steps of a completion's reasoning, one a line, and the verdict on each: right, wrong or not checkable.

A task that can check reasoning has a module `steps` with `check(completion, problem)`, which `Task.check_steps` calls.
Text that is not understood is `not checkable`, never wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

MOST_LINES = 2000  # of a completion; further ones are not read
MOST_CHARACTERS = 2000  # of a line; a longer one is not checkable
_TAG = re.compile(r"</?(?:think|reasoning)>")
Verdict = Literal["right", "wrong", "not checkable"]
RIGHT: Verdict = "right"
WRONG: Verdict = "wrong"
NOT_CHECKABLE: Verdict = "not checkable"


class Step(NamedTuple):
    """One line of reasoning. `line` counts all lines of the completion from 0; `why` says what is wrong."""

    line: int
    text: str
    verdict: Verdict
    why: str = ""


def numbered_lines(completion: str) -> Iterator[tuple[int, str]]:
    """The lines of the reasoning, without tags and up to the answer: numbered from 0, empty ones left out."""
    body = completion.rpartition("<answer>")[0] if "<answer>" in completion else completion
    for number, line in enumerate(body.split("\n")[:MOST_LINES]):
        if text := _TAG.sub("", line).strip():
            yield number, text


def judged_step(line: int, text: str, faults: Sequence[str] | None) -> Step:
    """A step that is wrong if there are faults, and not checkable if `faults` is None: it is not understood."""
    if faults is None:
        return Step(line, text, NOT_CHECKABLE)
    return Step(line, text, WRONG if faults else RIGHT, "; ".join(faults))


def all_right(steps: Sequence[Step]) -> bool | None:
    """Whether every checkable step is right; None if none is checkable."""
    checkable = [step for step in steps if step.verdict != NOT_CHECKABLE]
    return all(step.verdict == RIGHT for step in checkable) if checkable else None


def first_wrong(steps: Sequence[Step]) -> Step | None:
    """The first step that is wrong."""
    return next((step for step in steps if step.verdict == WRONG), None)
