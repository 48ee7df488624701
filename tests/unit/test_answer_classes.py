"""Verdicts by class of notation, on generated pairs, right and wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from eval.answer_pairs import CLASSES, pairs
from grading import Item, grade

PAIRS = pairs()


def test_every_class_has_enough_right_and_wrong_pairs() -> None:
    right = Counter(one.kind for one in PAIRS if one.right)
    wrong = Counter(one.kind for one in PAIRS if not one.right)
    assert set(right) == set(wrong) == set(CLASSES)
    assert all(right[kind] >= 5 and wrong[kind] >= 5 and right[kind] + wrong[kind] >= 40 for kind in CLASSES)


@pytest.mark.slow
def test_no_verdict_on_a_generated_pair_is_wrong() -> None:
    given = grade([Item("math", one.gold, f"So it is $\\boxed{{{one.answer}}}$.") for one in PAIRS])
    bad = [(one, got.verdict) for one, got in zip(PAIRS, given, strict=True) if (got.verdict == "correct") != one.right]
    assert not bad, bad[:10]


@pytest.mark.parametrize(
    ("gold", "completion", "expected"),
    [
        ("1, 3", r"$\boxed{1}$ and $\boxed{3}$", "correct"),
        ("1, 3", r"\boxed{3}, \boxed{1}", "correct"),
        ("1, 3", r"\boxed{1} \quad \boxed{3}", "correct"),
        ("1, 3", r"\boxed{1} \quad \text{or} \quad \boxed{3}", "correct"),
        ("1, 3", r"\boxed{x=1}, \qquad \boxed{x=3}", "correct"),
        ("1, 3", r"\boxed{1} and \boxed{4}", "wrong"),
        ("1, 3", r"\boxed{1}. Therefore \boxed{3}", "wrong"),
        ("1 \\text{ and } 3", r"\boxed{1} and \boxed{3}", "correct"),
        ("\\pm 2", r"\boxed{2} and \boxed{-2}", "correct"),
        ("3", r"\boxed{1} and \boxed{3}", "correct"),  # one answer: the last box
        ("(1, 3)", r"\boxed{1} and \boxed{3}", "wrong"),
        ("2, 5, 8", r"$\boxed{2}$, $\boxed{5}$ and $\boxed{8}$", "correct"),
        ("2, 5, 8", r"$\boxed{5}$ and $\boxed{8}$", "wrong"),
    ],
)
def test_several_boxes(gold: str, completion: str, expected: str) -> None:
    assert grade([Item("math", gold, completion)])[0].verdict == expected
