"""Knights and Knaves puzzles: what each person says, who can be what, and the puzzle in words and back.

The words are those of K-and-K (Xie et al., arXiv:2410.23123), which Logic-RL trains on. `read` understands every
question that `write` makes and every one of Logic-RL's files; `solutions` finds all consistent answers by trying them.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

# fmt: off
NAMES = (
    "Emma", "Liam", "Olivia", "Noah", "Ava", "Ethan", "Sophia", "Mason", "Isabella", "William", "Mia", "James",
    "Charlotte", "Benjamin", "Amelia", "Lucas", "Harper", "Henry", "Evelyn", "Alexander", "Abigail", "Michael",
    "Emily", "Daniel", "Elizabeth", "Jacob", "Sofia", "Logan", "Avery", "Jackson", "Ella", "Sebastian", "Scarlett",
    "Jack", "Grace", "Aiden", "Chloe", "Owen", "Victoria", "Samuel", "Riley", "Matthew", "Aria", "Joseph", "Lily",
    "Luke", "Aurora", "David", "Zoey", "Oliver", "Penelope",
)
# fmt: on
# Of a statement: how it is said of one or two claims, and when it is true.
FORMS: dict[str, tuple[str, Callable[..., bool]]] = {
    "is": ("{0}", lambda a: a),
    "not": ("{0}", lambda a: not a),  # the claim itself is worded with "not"
    "and": ("{0} and {1}", lambda a, b: a and b),
    "or": ("{0} or {1}", lambda a, b: a or b),
    "if": ("If {0} then {1}", lambda a, b: not a or b),
    "iff": ("{0} if and only if {1}", lambda a, b: a == b),
}
SAYINGS = (
    "{name} said that {content}.",
    "{name} told you that {content}.",
    '{name} said, "{content}."',
    '{name} stated, "{content}".',
    'According to {name}, "{content}".',
    'In {name}\'s words: "{content}".',
    '{name} remarked, "{content}".',
    '"{content}," {name} declared.',
    '{name} was heard saying, "{content}".',
    "{name} expressed that {content}.",
    '"{content}" - {name}.',
    'As {name} put it, "{content}".',
    '{name} asserted: "{content}".',
    '"{content}," {name} mentioned.',
    '{name} commented, "{content}".',
    'In a statement by {name}: "{content}".',
    '{name} noted, "{content}".',
    '"{content}," {name} claimed.',
)
SHORT_SAYING = "{name}: {content}."
OPENING = (
    "A very special island is inhabited only by knights and knaves. Knights always tell the truth, and knaves always "
    "lie. You meet {people} inhabitants: {names}."
)
CLOSING = "So who is a knight and who is a knave?"
WORDINGS = ("full", "short")


class Claim(NamedTuple):
    """That the person of this index is a knight, or is a knave."""

    person: int
    knight: bool


class Statement(NamedTuple):
    """What one person says: a form in FORMS over one claim (`is`, `not`) or two."""

    form: str
    claims: tuple[Claim, ...]

    def holds(self, knights: Sequence[bool]) -> bool:
        """Whether it is true if these people are knights."""
        return FORMS[self.form][1](*(knights[person] == knight for person, knight in self.claims))


def solutions(statements: Sequence[Statement]) -> list[tuple[bool, ...]]:
    """Every assignment (is each a knight?) in which knights, and only they, say what is true."""
    return [
        knights
        for knights in itertools.product((True, False), repeat=len(statements))
        if all(statement.holds(knights) == knight for statement, knight in zip(statements, knights, strict=True))
    ]


def statement_text(statement: Statement, names: Sequence[str]) -> str:
    """A statement in words, without its speaker."""
    negation = "not " if statement.form == "not" else ""
    claims = [f"{names[p]} is {negation}a {'knight' if knight else 'knave'}" for p, knight in statement.claims]
    return FORMS[statement.form][0].format(*claims)


def write_question(statements: Sequence[Statement], names: Sequence[str], wording: str, rng: random.Random) -> str:
    """The puzzle as a question: `full` like K-and-K's, each saying drawn; `short` with the statements alone."""
    if wording == "short":
        return " ".join(
            SHORT_SAYING.format(name=name, content=statement_text(statement, names))
            for name, statement in zip(names, statements, strict=True)
        )
    sayings = [
        rng.choice(SAYINGS).format(name=name, content=statement_text(statement, names))
        for name, statement in zip(names, statements, strict=True)
    ]
    people = ", ".join(names[:-1]) + f", and {names[-1]}"
    return " ".join([OPENING.format(people=len(names), names=people), *sayings, CLOSING])


_CLAIM = r"[A-Z][a-z]+ is (?:not )?a kn(?:ight|ave)"
_CONTENT = rf"(?P<content>(?:If {_CLAIM} then {_CLAIM}|{_CLAIM}(?: (?:and|or|if and only if) {_CLAIM})?))"
_ONE_CLAIM = re.compile(r"([A-Z][a-z]+) is (not )?a (knight|knave)")


def _saying_pattern(saying: str) -> re.Pattern[str]:
    return re.compile(re.escape(saying).replace(r"\{content\}", _CONTENT).replace(r"\{name\}", "(?P<name>[A-Z][a-z]+)"))


_PATTERNS = [_saying_pattern(saying) for saying in (*SAYINGS, SHORT_SAYING)]


def read_question(question: str) -> tuple[list[str], list[Statement]]:
    """Names and statements of a question in either wording, in the order of the speakers; ValueError if it is none."""
    body = question
    if "inhabitants: " in question:
        body = question.split("inhabitants: ", 1)[1].split(". ", 1)[1].removesuffix(CLOSING)
    said: list[tuple[str, str]] = []
    body, at = body.strip(), 0
    while at < len(body):
        match = next((statement for pattern in _PATTERNS if (statement := pattern.match(body, at))), None)
        if match is None:
            raise ValueError(f"no statement of a puzzle: {body[at : at + 80]}")
        said.append((match["name"], match["content"]))
        at = match.end() + (body[match.end() : match.end() + 1] == " ")
    names = [name for name, _ in said]
    return names, [_read_statement(text, names) for _, text in said]


def _read_statement(text: str, names: list[str]) -> Statement:
    claims = _ONE_CLAIM.findall(text)
    claims_made = tuple(Claim(names.index(name), role == "knight") for name, _, role in claims)
    if len(claims_made) == 1:
        return Statement("not" if claims[0][1] else "is", claims_made)
    form = next(
        form
        for form, connective in (("if", "If "), ("iff", " if and only if "), ("and", " and "), ("or", " or "))
        if connective in text
    )
    return Statement(form, claims_made)
