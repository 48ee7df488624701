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
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.problem_generation import ProblemSampler, check_names
from tasks.problems import Problem

TASK = "arithmetic"
KINDS = ("expressions", "words")
LEVELS = (1, 2, 3)
LARGEST = 30
LARGEST_OPERAND = 6
TRIES = 20_000  # for one more expression of a level before there counts as none
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


def _sample_expression(kind: str, level: int, rng: random.Random) -> Expression:
    numbers = tuple(rng.randint(1, LARGEST_OPERAND) for _ in range(level + 2))
    if kind == "words":
        operations = (rng.choice("+-"), "*", *(rng.choice("+-") for _ in range(level - 1)))
    else:
        operations = tuple(rng.choice("+-*") for _ in range(level + 1))
    return Expression(numbers, operations)


def generate(rows: int, split: str, seed: int, kinds: Sequence[str] = KINDS) -> list[Problem]:
    """`rows` distinct problems of one split, the kinds in turn; the same for the same arguments.

    Args:
        rows: how many.
        split: `train` or `test`.
        seed: of every choice.
        kinds: some of KINDS.

    Raises:
        UserError: an unknown kind or split, or more rows than there are problems.
    """
    check_names(TASK, "kind", kinds, KINDS)
    of_kind = [_generate_kind(len(range(i, rows, len(kinds))), kind, split, seed) for i, kind in enumerate(kinds)]
    return [of_kind[i % len(kinds)][i // len(kinds)] for i in range(rows)]


def _generate_kind(rows: int, kind: str, split: str, seed: int) -> list[Problem]:
    """Problems of one kind, levels in turn until one has no more: there are few easy expressions."""
    sampler = ProblemSampler(TASK, split, seed, stream=kind)

    def attempt(level: int) -> Problem | None:
        expression = _sample_expression(kind, level, sampler.rng)
        text = str(expression)
        if not (_misread_from_left_to_right(expression) and sampler.in_split(text) and sampler.is_new(text)):
            return None
        question = write_story(expression, sampler.rng) if kind == "words" else f"What is {text}?"
        meta = {"kind": kind, "level": level, "expression": text}
        return sampler.problem(question, str(expression.answer), meta, group=kind)

    return sampler.generate(
        rows, attempt, LEVELS, tries=TRIES, choose=lambda levels, count: levels[count % len(levels)], go_on=True
    )


def _misread_from_left_to_right(expression: Expression) -> bool:
    """Whether all results are in range in both readings, and the readings differ in the answer."""
    right, left_to_right = expression.steps(True), expression.steps(False)
    return right is not None and left_to_right is not None and right[-1][3] != left_to_right[-1][3]


def expression_of(problem: Problem) -> Expression:
    """The bare expression behind a problem."""
    text = problem.meta["expression"]
    return Expression(tuple(int(c) for c in text[::2]), tuple(text[1::2]))
