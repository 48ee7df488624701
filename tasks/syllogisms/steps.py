"""Check the reasoning of syllogisms: a line that states something of two of the terms is right if it follows.

A line that says that nothing follows about two terms is right if no statement about them does. Conditions, questions
and denials are not checked.
"""

from __future__ import annotations

import re
from typing import Any

from tasks.problems import Problem
from tasks.reasoning_steps import Step, judged_step, numbered_lines
from tasks.syllogisms.forms import Statement, follows, statements_in, strongest

RIGHT_HABITS: dict[str, Any] = {"sound": 1.0, "linked": 0.0, "slip": 0.0}  # traces without a fault
OTHER_WORDS = {  # by a quantifier, one with which a right statement is wrong
    "All": "No", "all": "no", "No": "Some", "no": "some", "Some": "No", "some": "no",
}  # fmt: skip
_NOTHING = re.compile(r"\bnothing follows about ([a-z]+) and ([a-z]+)\b", re.IGNORECASE)
_OPEN = re.compile(r"\?|\b(?:if|whether|does|not follow|doesn't|cannot|can't|may|might)\b", re.IGNORECASE)


def check(completion: str, problem: Problem) -> list[Step] | None:
    """The steps of a completion; see Task.check_steps."""
    terms = problem.meta.get("terms")
    if not isinstance(terms, list) or len(premises := statements_in(problem.question, terms)[:2]) < 2:
        return None
    return [
        judged_step(number, text, _faults(text, terms, tuple(premises)))
        for number, text in numbered_lines(completion)
    ]  # fmt: skip


def _faults(text: str, terms: list[str], premises: tuple[Statement, ...]) -> list[str] | None:
    """What is wrong in a line; None if it states nothing."""
    nothing = [pair for pair in _NOTHING.findall(text) if {*pair} <= {*terms}]
    stated = [] if _OPEN.search(text) else statements_in(text, terms)
    if not nothing and not stated:
        return None
    missed = [strongest(premises, terms.index(subject), terms.index(predicate)) for subject, predicate in nothing]
    return [
        *(f"{statement.text(terms)} does not follow" for statement in stated if not follows(premises, statement)),
        *(f"{statement.text(terms)} follows" for statement in missed if statement),
    ]
