"""The generated task: right answers, disjoint splits, wrong left-to-right readings."""

from __future__ import annotations

import ast
import itertools
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.arithmetic import problems as arithmetic
from tasks.problems import SPLITS
from tests.user_errors import refused

expressions = st.integers(1, 4).flatmap(
    lambda n: st.builds(
        arithmetic.Expression,
        st.tuples(*[st.integers(1, 9)] * (n + 1)),
        st.tuples(*[st.sampled_from("+-*")] * n),
    )
)
BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def value(text: str) -> int:
    """The value by Python's own grammar, as an independent reference."""

    def walk(node: ast.AST) -> int:
        if isinstance(node, ast.BinOp):
            return BINARY[type(node.op)](walk(node.left), walk(node.right))
        assert isinstance(node, ast.Constant)
        return node.value

    return walk(ast.parse(text, mode="eval").body)


@given(expressions)
def test_multiplication_goes_first(expression: arithmetic.Expression) -> None:
    steps = expression.steps(multiplication_first=True)
    if steps is not None:
        assert steps[-1][3] == value(str(expression)) == expression.answer


@pytest.mark.parametrize("kind", arithmetic.KINDS)
def test_problems_are_distinct_in_range_and_trap_the_left_to_right_reader(kind: str) -> None:
    chosen = arithmetic.generate(600, "train", seed=1, kinds=[kind])
    assert len({p.problem_id for p in chosen}) == 600
    assert {p.meta["level"] for p in chosen} == set(arithmetic.LEVELS)
    for problem in chosen:
        expression = arithmetic.expression_of(problem)
        left_to_right = expression.steps(multiplication_first=False)
        assert left_to_right is not None and left_to_right[-1][3] != int(problem.answer or "")
        assert int(problem.answer or "") == value(problem.meta["expression"])
        assert 0 <= expression.answer <= arithmetic.LARGEST


@pytest.mark.slow
def test_no_expression_is_in_both_splits_whatever_the_wording_or_seed() -> None:
    texts = {
        split: {
            p.meta["expression"]
            for kind, seed in itertools.product(arithmetic.KINDS, (0, 1))
            for p in arithmetic.generate(400, split, seed, kinds=[kind])
        }
        for split in SPLITS
    }
    assert not texts["train"] & texts["test"]


def test_the_same_seed_gives_the_same_problems() -> None:
    assert arithmetic.generate(50, "test", 3, kinds=["words"]) == arithmetic.generate(50, "test", 3, kinds=["words"])
    assert arithmetic.generate(50, "test", 3, kinds=["words"]) != arithmetic.generate(50, "test", 4, kinds=["words"])


def test_the_story_says_the_numbers_in_order() -> None:
    for problem in arithmetic.generate(60, "train", 0, kinds=["words"]):
        said = [int(word) for word in problem.question.split() if word.isdigit()]
        assert tuple(said) == arithmetic.expression_of(problem).numbers


def test_unknown_kinds_and_splits_are_named() -> None:
    with refused("unknown-name", name="prose"):
        arithmetic.generate(1, "train", 0, kinds=["prose"])
    with refused("unknown-name", name="validation"):
        arithmetic.generate(1, "validation", 0, kinds=["words"])
