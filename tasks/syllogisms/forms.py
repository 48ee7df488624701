"""Statements of classical logic about kinds of things, what follows from two of them, and the published labels.

A statement is about a subject and a predicate, two of the terms 0, 1 and 2; of each there is at least one thing, as in
Aristotle's logic and in the published data: so from "All A are B" follows "Some B are A".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

ALL, NO, SOME, SOME_NOT = "all", "no", "some", "some not"
QUANTIFIERS = (ALL, NO, SOME, SOME_NOT)  # the earlier one says more, if two follow
NEGATIVE, UNIVERSAL = (NO, SOME_NOT), (ALL, NO)
TEXTS = {
    ALL: "All {} are {}", NO: "No {} are {}", SOME: "Some {} are {}", SOME_NOT: "Some {} are not {}"
}  # fmt: skip
_STATEMENT = re.compile(r"\b(all|no|some) ([a-z]+) are (not )?([a-z]+)\b", re.IGNORECASE)
_QUANTIFIERS = {  # by word, and whether `not` follows; "All … are not …" may mean two things
    ("all", False): ALL, ("no", False): NO, ("some", False): SOME, ("some", True): SOME_NOT, ("no", True): ALL
}  # fmt: skip
KINDS = list(itertools.product((False, True), repeat=3))  # of things: which of the three terms they are
WORLDS = [
    world
    for size in range(1, len(KINDS) + 1)
    for world in itertools.combinations(KINDS, size)
    if all(any(kind[term] for kind in world) for term in range(3))
]  # which kinds of things there are


class Statement(NamedTuple):
    """Such as all (quantifier) of term 0 (subject) are of term 1 (predicate)."""

    quantifier: str
    subject: int
    predicate: int

    def text(self, terms: Sequence[str]) -> str:
        """In words, with the names of the terms."""
        return TEXTS[self.quantifier].format(terms[self.subject], terms[self.predicate])

    def holds(self, world: Sequence[Sequence[bool]]) -> bool:
        """Whether it is true where there are these kinds of things."""
        are = {kind[self.predicate] for kind in world if kind[self.subject]}
        return {ALL: are == {True}, NO: are == {False}, SOME: True in are, SOME_NOT: False in are}[self.quantifier]


def statements_in(text: str, terms: Sequence[str]) -> list[Statement]:
    """All statements about two of the terms that a text makes, in its order."""
    return [
        Statement(_QUANTIFIERS[quantifier.lower(), bool(negated)], terms.index(subject), terms.index(predicate))
        for quantifier, subject, negated, predicate in _STATEMENT.findall(text)
        if {subject, predicate} <= set(terms)
        and subject != predicate
        and (negated, quantifier.lower()) != ("not ", ALL)
    ]


@cache
def follows(premises: tuple[Statement, ...], conclusion: Statement) -> bool:
    """Whether the conclusion is true wherever all premises are."""
    return all(conclusion.holds(world) for world in WORLDS if all(premise.holds(world) for premise in premises))


def strongest(premises: tuple[Statement, ...], subject: int, predicate: int) -> Statement | None:
    """What follows of a subject and a predicate; None if nothing does."""
    statements = (Statement(quantifier, subject, predicate) for quantifier in QUANTIFIERS)
    return next((statement for statement in statements if follows(premises, statement)), None)


def labelled_valid(premises: Sequence[Statement], conclusion: Statement) -> bool:
    """The label of a syllogism in reasoning-gym 0.1.25, logic/syllogisms.py: all classical rules but one.

    Not asked is that the middle term is distributed: "All A are B, some B are C, so some A are C" is valid there.

    Args:
        premises: of terms 0 and 1, and of 1 and 2.
        conclusion: of terms 0 and 2.
    """
    quantifiers = [premise.quantifier for premise in premises]
    negatives = sum(quantifier in NEGATIVE for quantifier in quantifiers)
    if negatives == 2 or not any(quantifier in UNIVERSAL for quantifier in quantifiers):
        return False
    if conclusion.quantifier in UNIVERSAL and not all(quantifier in UNIVERSAL for quantifier in quantifiers):
        return False
    return (conclusion.quantifier in NEGATIVE) == (negatives == 1) and (
        conclusion.quantifier not in NEGATIVE or quantifiers[1] in NEGATIVE
    )


def labelled_converse(quantifier: str) -> str | None:
    """The quantifier with which a statement may be turned around, by reasoning-gym's labels; None for `some not`."""
    return {ALL: SOME, NO: NO, SOME: SOME}.get(quantifier)
