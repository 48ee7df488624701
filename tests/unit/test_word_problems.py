"""Word problems: their answers by another way of counting, disjoint splits, and what their steps say."""

from __future__ import annotations

import itertools

import pytest

from tasks import registry
from tasks.problems import Problem
from tasks.word_problems import problems

TASK = registry.get("word_problems")


def told(question: str) -> int:
    """What a story says, word by word."""
    total, tokens = 0, question.replace(".", "").split()
    for verb, number in itertools.pairwise(tokens):
        total += {"has": 1, "buys": 1, "gives": -1}.get(verb, 0) * (int(number) if number.isdigit() else 0)
    return total


def test_answers_are_what_the_stories_say() -> None:
    stories = problems.generate(400, "train", 3, levels=(1, 2, 3))
    assert {problem.meta["level"] for problem in stories} == {1, 2, 3}
    assert [told(problem.question) for problem in stories] == [int(problem.answer or "") for problem in stories]
    assert len({problem.question for problem in stories}) == 400


def test_no_calculation_is_in_both_splits() -> None:
    train, test = (
        {problem.meta["expression"] for problem in problems.generate(rows, split, seed)}
        for rows, split, seed in ((1500, "train", 0), (300, "test", 1))
    )
    assert train and test and not train & test


def test_stories_of_one_calculation_are_one_observation() -> None:
    stories = problems.generate(200, "test", 0, largest=10)
    calculations = {problem.meta["expression"] for problem in stories}
    assert {problem.cluster for problem in stories} == calculations and len(calculations) < 50


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("7 + 5 = 12", "right"), ("Mia has 7 + 5 = 12 apples.", "right"), ("12 - 3 = 9.", "right"),
        ("3 apples + 5 apples = 8 apples", "right"), ("3 apples + 5 more apples = 9 apples", "wrong"),
        ("7 + 5 - 3 = 9", "right"), ("7 + 5 = 13", "wrong"), ("4 × 3 = 12", "right"), ("5 − 9 = -4", "right"),
        ("7 + 5 = 12 and 12 - 3 = 8", "wrong"), ("Mia has 12 apples.", "not checkable"),
        ("2 + 3 = 5.5", "not checkable"), ("The answer is 12.", "not checkable"), ("1 = 1", "not checkable"),
    ],
)  # fmt: skip
def test_a_stated_calculation_is_checked(line: str, verdict: str) -> None:
    steps = TASK.check_steps(line, Problem("", "word_problems", "", "12", {}))
    assert steps is not None and [step.verdict for step in steps] == [verdict]
