"""Verdicts by class of notation, on generated pairs, right and wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import sympy

from grading import Item, grade
from studies.grader_validation import pair_agreement
from studies.grader_validation.answer_pairs import CLASSES, pairs
from tasks.math_answers import by_math_verify

PAIRS = pairs()
WRITTEN = Path(__file__).with_name("answer_pairs.jsonl")  # by hand, before the judge was tried on them
KNOWN = "known misses"  # their kind, of the pairs on which the judge is wrong


def test_every_class_has_enough_right_and_wrong_pairs() -> None:
    right = Counter(one.kind for one in PAIRS if one.right)
    wrong = Counter(one.kind for one in PAIRS if not one.right)
    assert set(right) == set(wrong) == set(CLASSES)
    assert all(right[kind] >= 5 and wrong[kind] >= 5 and right[kind] + wrong[kind] >= 40 for kind in CLASSES)


@pytest.mark.slow
def test_no_verdict_on_a_generated_pair_is_wrong() -> None:
    grades = grade([Item("math", one.gold, f"So it is $\\boxed{{{one.answer}}}$.") for one in PAIRS])
    bad = [
        (one, got.verdict) for one, got in zip(PAIRS, grades, strict=True) if (got.verdict == "correct") != one.right
    ]
    assert not bad, bad[:10]


@pytest.mark.slow
def test_no_verdict_on_a_pair_written_by_hand_is_wrong_but_the_known_ones() -> None:
    chosen = pair_agreement.read(WRITTEN)
    grades = grade([Item("math", one.gold, f"\\boxed{{{one.answer}}}") for one in chosen])
    bad = [one for one, got in zip(chosen, grades, strict=True) if (got.verdict == "correct") != one.right]
    assert [one for one in bad if one.kind != KNOWN] == []
    assert len(bad) <= 0.03 * len(chosen)


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
        ("1, 2", r"$k=\boxed{3}$, so we find $\boxed{1, 2}$", "correct"),  # the last box alone
        ("1, 3", "So $x=\\boxed{1}$ and $x=\\boxed{3}$.", "correct"),
        ("1,3", "\\boxed{1} \\quad \\boxed{3}", "correct"),
        ("1, 3", "\\boxed{1}, \\boxed{3}", "correct"),
        ("1, 3", "\\boxed{1} or \\boxed{3}", "correct"),
        ("3", "\\boxed{1} and \\boxed{3}", "correct"),
        ("1, 3", "\\boxed{1} and \\boxed{4}", "wrong"),
        ("1, 3, 5", "\\boxed{1}, \\boxed{3}, and \\boxed{5}", "correct"),
        ("1, 3, 5", "\\boxed{1}, \\boxed{3}", "wrong"),
        ("x=1, x=3", "$\\boxed{x=1}$ or $\\boxed{x=3}$", "correct"),
        ("(1,2),(3,4)", "The pairs are $\\boxed{(1,2)}$ and $\\boxed{(3,4)}$.", "correct"),
        ("1,3", "First \\boxed{1}. Later we find \\boxed{3}.", "wrong"),
        ("\\{1,3\\}", "\\boxed{1} and \\boxed{3}", "correct"),
        ("\\pm 2", "\\boxed{2} and \\boxed{-2}", "correct"),
        ("7, 4", "\\boxed{7} goats and \\boxed{4} helicopters", "correct"),
        ("1, 3", "\\(\\boxed{1}\\) \\text{ and } \\(\\boxed{3}\\)", "correct"),
        ("1,3", "\\[\\boxed{1}\\] and \\[\\boxed{3}\\]", "correct"),
        ("1,3", "\\boxed{1}\\text{ or }\\boxed{3}", "correct"),
        ("1,3", "\\boxed{1 \\text{ and } 3}", "correct"),
        ("1,3", "\\boxed{x_1=1}, \\boxed{x_2=3}", "correct"),
        ("1,3", "$\\boxed{1}$; $\\boxed{3}$", "correct"),
        ("1,3", "\\boxed{1} & \\boxed{3}", "correct"),
        ("1,3", "\\boxed{1}\n\nand\n\n\\boxed{3}", "correct"),
        ("2,3", "a = \\boxed{2}, b = \\boxed{3}", "correct"),
        ("1, 2", "$x_1=\\boxed{1}$ and $x_2=\\boxed{2}$", "correct"),
        ("12, 5", "length is $\\boxed{12}$ cm and width is $\\boxed{5}$ cm", "correct"),
        ("12", "First, \\boxed{11}, and then \\boxed{12}", "correct"),
        ("\\{2,3\\}", "$\\boxed{2}$ or $\\boxed{3}$", "correct"),
        ("2, 3", "$\\boxed{2}$, $\\boxed{3}$, $\\boxed{4}$", "wrong"),
        ("2,3", "\\boxed{2,3}, so \\boxed{2,3}", "correct"),
        ("2,3", "answer \\boxed{2,3} and the sum is \\boxed{5}", "wrong"),
        ("1, 2", r"$x = \boxed{1} \text{ or } x = \boxed{2}$", "correct"),
        ("1, 2", "- $\\boxed{1}$\n- $\\boxed{2}$", "correct"),
        ("1, 2", "1. $\\boxed{1}$\n2. $\\boxed{2}$", "correct"),
        ("1, 2", r"(a) $\boxed{1}$ (b) $\boxed{2}$", "correct"),
        ("1, 2", r"**$\boxed{1}$** and **$\boxed{2}$**", "correct"),
        ("1, 2", r"$\boxed{1}$ is not a solution, and $\boxed{3}$", "wrong"),
        ("1, 2", "- $\\boxed{1}$\n- $\\boxed{3}$", "wrong"),
        ("1, 2", r"\boxed{1} and \boxed{2} and \boxed{3}", "wrong"),
        ("1, 2", r"The smaller is $\boxed{1}$ and the larger is $\boxed{2}$.", "correct"),
        ("x=1, y=2", r"$\boxed{x=1}$ and $\boxed{y=2}$", "correct"),
        ("x=1, y=2", r"$\boxed{x=2}$ and $\boxed{y=1}$", "wrong"),
        ("(1,2), (3,4)", r"$\boxed{(1,2)}, \boxed{(4,3)}$", "wrong"),
        ("1, 2", r"<think>\boxed{1} and \boxed{2}</think> \boxed{2}", "wrong"),
    ],
)
def test_several_boxes(gold: str, completion: str, expected: str) -> None:
    assert grade([Item("math", gold, completion)])[0].verdict == expected


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("9", r"9\%", "correct"),  # a sign that says in what the answer is counted
        (r"9\%", "9", "correct"),
        ("0.05", r"5\%", "correct"),
        (r"5\%", r"\frac{1}{20}", "correct"),
        ("0.05", r"6\%", "wrong"),
        ("0.9", r"9\%", "wrong"),
    ],
)
def test_percents_with_any_release_of_math_verify(gold: str, answer: str, expected: str) -> None:
    (graded,) = grade([Item("math", gold, f"\\boxed{{{answer}}}")])
    assert graded.verdict == expected


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("10^{-40}", "(10^{-40})+1=10^{-40}", "wrong"),
        (r"3\cdot2^{-200}", r"1+3\cdot2^{-200}=3\cdot2^{-200}", "wrong"),
        (r"\frac{1}{2^{200}}", r"2^{-200}+2^{-200}=\frac{1}{2^{200}}", "wrong"),
        (r"\frac{1}{2^{199}}", r"2^{-200}+2^{-200}=\frac{1}{2^{199}}", "correct"),
        ("10^{-40}", "10^{-40}+1-1=10^{-40}", "correct"),
        ("0.84", r"\sin 1 = 0.84", "correct"),
    ],
)
def test_an_equation_of_numbers_of_any_size_holds_or_is_no_answer(gold: str, answer: str, expected: str) -> None:
    assert grade([Item("math", gold, f"\\boxed{{{answer}}}")])[0].verdict == expected


@pytest.mark.parametrize(
    "formula", [r"\left[x+1\right]^2", "[x+1]y", "|x-y|", "{x}^2", "(x+1)^2", r"\frac{x}{2}", "-x"]
)
@pytest.mark.parametrize("before", ["最大值为 ", "最小值是", "面积为：", "所以"])
def test_chinese_before_a_formula_says_nothing(before: str, formula: str) -> None:
    assert grade([Item("math", formula, f"\\boxed{{{before}{formula}}}")])[0].verdict == "correct"


def test_an_unevaluated_hundredth_has_a_size() -> None:
    """As math-verify 0.9 parses percents."""
    percents = sympy.Mul(5, sympy.UnevaluatedExpr(sympy.Rational(1, 100)))
    assert not by_math_verify._differ_relatively(sympy.Float("0.05"), percents)
    assert by_math_verify._differ_relatively(sympy.Float("0.06"), percents)
