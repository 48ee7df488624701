"""24 points: the solver against brute force, the sets of problems, and the verifier, which evaluates nothing."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks import registry
from tasks.expressions import evaluate
from tasks.game24 import problems, solver
from tests.budgets import examples
from tests.user_errors import refused

VERIFY = registry.get("game24").verify


def brute_force(cards: tuple[int, ...]) -> bool:
    """Whether any order, any operations and any brackets make 24, each written out and evaluated by the verifier."""
    shapes = (
        "(({}{}{}){}{}){}{}",
        "({}{}({}{}{})){}{}",
        "({}{}{}){}({}{}{})",
        "{}{}(({}{}{}){}{})",
        "{}{}({}{}({}{}{}))",
    )
    for a, b, c, d in set(itertools.permutations(cards)):
        for x, y, z in itertools.product("+-*/", repeat=3):
            if any(evaluate(shape.format(a, x, b, y, c, z, d))[0] == 24 for shape in shapes):
                return True
    return False


@pytest.mark.parametrize(
    ("cards", "solvable"),
    [((3, 3, 8, 8), True), ((1, 5, 5, 5), True), ((1, 1, 1, 1), False), ((1, 1, 7, 7), False), ((1, 3, 4, 6), True)],
)
def test_the_solver_finds_what_brute_force_finds(cards: tuple[int, ...], solvable: bool) -> None:
    assert (solver.solve(cards) is not None) == solvable == brute_force(cards)


@examples("built text")
@given(st.lists(st.integers(1, 13), min_size=4, max_size=4), st.booleans())
def test_solutions_are_right_and_use_every_card(cards: list[int], whole: bool) -> None:
    solution = solver.solve(cards, whole)
    if solution is None:
        assert whole or VERIFY("none", problems.NONE, {"cards": cards}) == "correct"
        return
    text = solver.write_expression(cards, solution)
    assert evaluate(text)[0] == 24 and sorted(evaluate(text)[1]) == sorted(cards)
    assert VERIFY(text, text, {"cards": cards}) == "correct" and VERIFY("none", text, {"cards": cards}) == "wrong"
    assert not whole or all(one.result >= 0 and one.result.denominator == 1 for one in solution)
    assert solution[-1].left == (Fraction(24),)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("8/(3-8/3)", "correct"), ("8 / (3 - 8 / 3) = 24", "correct"), ("8*3", "wrong"), ("8*3*(8-3)/5", "wrong"),
        ("3*8+8-8", "wrong"), ("none", "wrong"), ("8/(3-3)+8", "wrong"), ("__import__('os')", "format_error"),
        ("8**3", "format_error"), ("", "format_error"), ("(" * 400, "format_error"),
    ],
)  # fmt: skip
def test_answers(answer: str, expected: str) -> None:
    assert VERIFY(answer, "8 / (3 - 8 / 3)", {"cards": [8, 3, 8, 3]}) == expected


def test_unusable_problems_are_ungradable() -> None:
    assert VERIFY("1", "1", {}) == VERIFY("1", "", {"cards": [1]}) == VERIFY("1", "1", {"cards": "x"}) == "ungradable"


@pytest.mark.parametrize(("cards", "largest"), [(4, 9), (3, 20)])
def test_sets_are_solvable_and_share_no_multiset(cards: int, largest: int) -> None:
    splits = ("train", "test")
    sets = {split: problems.generate(57, split, 0, cards=cards, largest=largest, whole=True) for split in splits}
    hands = {split: {tuple(sorted(p.meta["cards"])) for p in generated} for split, generated in sets.items()}
    assert not hands["train"] & hands["test"]
    assert all(len(hand) == 57 and {len(held) for held in hand} == {cards} for hand in hands.values())
    for problem in sets["train"]:
        assert VERIFY(problem.answer or "", problem.answer or "", problem.meta) == "correct"


def test_sets_without_a_solution_and_what_is_refused() -> None:
    unsolvable = problems.generate(8, "test", 0, solvable=False)
    assert all(p.answer == problems.NONE and not brute_force(tuple(p.meta["cards"])) for p in unsolvable[:2])
    assert problems.generate(8, "test", 0, solvable=False) == unsolvable
    for wrong, code in (
        ({"split": "dev"}, "unknown-name"), ({"wording": "long"}, "unknown-name"),
        ({"rows": 5000, "largest": 3}, "too-few-problems"),
    ):  # fmt: skip
        with refused(code):
            problems.generate(**{"rows": 1, "split": "train", "seed": 0, **wrong})
