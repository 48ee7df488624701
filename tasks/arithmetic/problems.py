"""Arithmetic problems, generated: chains of two to four operations, as an expression or in words.

Multiplication goes first, and reading from left to right gives another, wrong, number:

    expression   What is 5+3*4-2?
    words        Mia has 5 apples. She buys 3 bags with 4 apples each. She gives 2 apples away. How many apples …
    answer       15          (left to right it would be 30)

Levels 1, 2 and 3 have two, three and four operations. All intermediate results, in either reading, are between 0 and
30. Training and held-out problems are disjoint: the split depends on a hash of the expression, whatever the wording.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Iterator
from dataclasses import dataclass

from system.errors import UserError
from tasks.problems import SPLITS, Problem, generated_id, split_of

TASK = "arithmetic"
KINDS = ("expressions", "words")
LEVELS = (1, 2, 3)
LARGEST = 30
LARGEST_OPERAND = 6
TRIES = 20_000
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}

NAMES = (("Mia", "She"), ("Tom", "He"), ("Ana", "She"), ("Leo", "He"), ("Zoe", "She"), ("Sam", "He"))
THINGS = (("apples", "bags"), ("books", "boxes"), ("cards", "packs"), ("coins", "jars"), ("eggs", "baskets"))


@dataclass(frozen=True)
class Expression:
    """`numbers[0] operations[0] numbers[1] …`, all numbers from 1 to 6."""

    numbers: tuple[int, ...]
    operations: tuple[str, ...]

    def __str__(self) -> str:
        """The expression as text, without spaces."""
        return "".join(f"{n}{op}" for n, op in zip(self.numbers, (*self.operations, ""), strict=True))

    def steps(self, multiplication_first: bool) -> list[tuple[int, str, int, int]] | None:
        """The calculations (left, operation, right, result) in order; None if a result leaves 0 … 30."""
        numbers, operations, done = list(self.numbers), list(self.operations), []
        while operations:
            at = operations.index("*") if multiplication_first and "*" in operations else 0
            left, op, right = numbers[at], operations.pop(at), numbers[at + 1]
            result = OPERATIONS[op](left, right)
            if not 0 <= result <= LARGEST:
                return None
            numbers[at : at + 2] = [result]
            done.append((left, op, right, result))
        return done

    @property
    def answer(self) -> int:
        """Its value."""
        steps = self.steps(True)
        assert steps is not None, f"{self} leaves 0 … {LARGEST} on the way"
        return steps[-1][3]


def write_story(expression: Expression, rng: random.Random) -> str:
    """A story for an expression whose every `*` stands between the second and the third number."""
    (name, pronoun), (things, packs) = rng.choice(NAMES), rng.choice(THINGS)
    first, packed, each, *rest = expression.numbers
    gained = "buys" if expression.operations[0] == "+" else "gives away"
    story = [f"{name} has {first} {things}.", f"{pronoun} {gained} {packed} {packs} with {each} {things} each."]
    for number, op in zip(rest, expression.operations[2:], strict=True):
        story.append(f"{pronoun} finds {number} {things}." if op == "+" else f"{pronoun} loses {number} {things}.")
    return " ".join([*story, f"How many {things} are left?"])


def _draw(kind: str, level: int, rng: random.Random) -> Expression:
    numbers = tuple(rng.randint(1, LARGEST_OPERAND) for _ in range(level + 2))
    if kind == "words":
        operations = (rng.choice("+-"), "*", *(rng.choice("+-") for _ in range(level - 1)))
    else:
        operations = tuple(rng.choice("+-*") for _ in range(level + 1))
    return Expression(numbers, operations)


def problems(kind: str, split: str, seed: int = 0) -> Iterator[Problem]:
    """Distinct problems of one kind and split, levels in turn until one runs out; the same for the same seed.

    Raises:
        UserError: an unknown kind or split.
    """
    if kind not in KINDS or split not in SPLITS:
        raise UserError(f"arithmetic has the kinds {KINDS} and the splits {SPLITS}, not '{kind}' and '{split}'")
    rng = random.Random(f"{kind}/{split}/{seed}")
    seen: set[Expression] = set()
    levels = list(LEVELS)
    while levels:
        level = levels[len(seen) % len(levels)]
        found = next(
            (e for e in (_draw(kind, level, rng) for _ in range(TRIES)) if e not in seen and _fits(e, split)), None
        )
        if found is None:  # the easy levels have few problems
            levels.remove(level)
            continue
        seen.add(found)
        question = write_story(found, rng) if kind == "words" else f"What is {found}?"
        meta = {"kind": kind, "level": level, "expression": str(found)}
        yield Problem(generated_id(f"{kind}-{split}", question), TASK, question, str(found.answer), meta)


def _fits(expression: Expression, split: str) -> bool:
    right, left_to_right = expression.steps(True), expression.steps(False)
    if right is None or left_to_right is None or right[-1][3] == left_to_right[-1][3]:
        return False
    return split_of(str(expression)) == split


def generate(rows: int, kinds: list[str], split: str, seed: int) -> list[Problem]:
    """`rows` problems, the kinds in turn.

    Args:
        rows: how many.
        kinds: some of KINDS.
        split: `train` or `test`.
        seed: of all draws.

    Raises:
        UserError: an unknown kind or split, or more rows than there are problems.
    """
    streams = [problems(kind, split, seed) for kind in kinds]
    chosen = [problem for i in range(rows) if (problem := next(streams[i % len(streams)], None))]
    if len(chosen) < rows:
        raise UserError(
            f"arithmetic has fewer than {rows} problems in {', '.join(kinds)} ({split}); ask for fewer rows"
        )
    return chosen


def expression_of(problem: Problem) -> Expression:
    """The bare expression behind a problem."""
    text = problem.meta["expression"]
    return Expression(tuple(int(c) for c in text[::2]), tuple(text[1::2]))
