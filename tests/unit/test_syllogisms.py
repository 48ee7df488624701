"""Syllogisms: what follows by the moods of the schools, the published labels, traces, steps and rewards."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from recipes.syllogisms.reward import as_published
from tasks import prompts, registry
from tasks.problems import Problem
from tasks.syllogisms import PUBLISHED, forms, problems
from tasks.syllogisms.demo_traces import Habits, completion
from tasks.syllogisms.forms import ALL, NO, QUANTIFIERS, SOME, SOME_NOT, Statement

TASK = registry.get("syllogisms")
LETTERS = dict(zip("AEIO", (ALL, NO, SOME, SOME_NOT), strict=True))
# All 24 valid moods by figure, with those that need at least one thing of each kind (Aristotle, Prior Analytics).
MOODS = {
    1: "AAA EAE AII EIO AAI EAO", 2: "EAE AEE EIO AOO EAO AEO", 3: "AAI EAO IAI AII OAO EIO",
    4: "AAI AEE IAI EAO EIO AEO",
}  # fmt: skip
FIGURES = {1: ((1, 2), (0, 1)), 2: ((2, 1), (0, 1)), 3: ((1, 2), (1, 0)), 4: ((2, 1), (1, 0))}  # major, minor premise
# Of terms 0, 1 and 1, 2, concluding on 0, 2: the forms that `_is_valid_syllogism` of reasoning-gym 0.1.25 takes
LABELLED = {
    (ALL, ALL, ALL), (ALL, ALL, SOME), (ALL, NO, NO), (ALL, NO, SOME_NOT), (ALL, SOME, SOME),
    (ALL, SOME_NOT, SOME_NOT), (SOME, ALL, SOME), (SOME, NO, SOME_NOT),
}  # fmt: skip


@pytest.mark.parametrize("figure", FIGURES)
def test_what_follows_are_the_moods_of_the_schools(figure: int) -> None:
    valid = {
        "".join(mood)
        for mood in itertools.product("AEIO", repeat=3)
        if forms.follows(
            tuple(Statement(LETTERS[letter], *terms) for letter, terms in zip(mood, FIGURES[figure], strict=False)),
            Statement(LETTERS[mood[2]], 0, 2),
        )
    }
    assert valid == set(MOODS[figure].split())


def test_the_published_labels_miss_the_middle_term() -> None:
    wrong = set()
    for first, second, third in itertools.product(QUANTIFIERS, repeat=3):
        premises, conclusion = (Statement(first, 0, 1), Statement(second, 1, 2)), Statement(third, 0, 2)
        labelled = forms.labelled_valid(premises, conclusion)
        assert labelled == ((first, second, third) in LABELLED)
        if labelled != forms.follows(premises, conclusion):
            wrong.add((first, second, third))
    assert wrong == {(ALL, SOME, SOME), (ALL, SOME_NOT, SOME_NOT)}


def test_statements_may_be_turned_around() -> None:
    converses = {quantifier: forms.strongest((Statement(quantifier, 0, 1),), 1, 0) for quantifier in QUANTIFIERS}
    assert {key: value and value.quantifier for key, value in converses.items()} == {
        quantifier: forms.labelled_converse(quantifier) for quantifier in QUANTIFIERS
    }


@pytest.mark.slow
def test_shares_of_answers_and_labels() -> None:
    counts = Counter((row.answer, row.meta["published_answer"]) for row in problems.generate(6000, "train", 3))
    assert not counts["Yes", "No"]
    assert sum(count for (_, label), count in counts.items() if label == "Yes") / 6000 == pytest.approx(0.69, abs=0.02)
    assert counts["No", "Yes"] / 6000 == pytest.approx(0.12, abs=0.015)  # wrong labels


@pytest.mark.parametrize("wording", problems.WORDINGS)
def test_questions_say_what_they_are_answered_by(wording: str) -> None:
    for row in problems.generate(200, "test", 1, wording):
        *premises, conclusion = forms.statements_in(row.question, row.meta["terms"])
        assert row.answer == problems.answer_text(forms.follows(tuple(premises), conclusion))
        assert len(premises) == 2 and row.cluster


def test_no_problem_is_in_both_splits() -> None:
    train, test = ({row.question for row in problems.generate(500, split, 0)} for split in ("train", "test"))
    assert len(train) == len(test) == 500 and not train & test


@pytest.mark.parametrize(("habit", "key"), [("sound", ""), ("linked", PUBLISHED)])
def test_traces_conclude_what_their_habit_says(habit: str, key: str) -> None:
    habits = Habits(**{"sound": 0.0, "linked": 0.0, "format_kept": 1.0, "slip": 0.0, habit: 1.0})
    prompt, rng = prompts.load("syllogisms-short"), random.Random(0)
    wrong_reasons = 0
    for row in problems.generate(300, "train", 2, "short"):
        trace = completion(row, prompt, habits, rng)
        thought, _, answer = trace.removesuffix("</answer>").partition("</think><answer>")
        assert TASK.verify(answer, row.answer or "", row.meta, grader=key) == "correct"
        steps = TASK.check_steps(thought, row)
        assert steps is not None and [step.verdict for step in steps] == ["right", steps[-1].verdict]
        wrong_reasons += steps[1].verdict == "wrong"
    assert bool(wrong_reasons) == (habit == "linked")


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("So some adults are not whales.", "wrong"), ("So nothing follows about adults and whales.", "right"),
        ("So nothing follows about chefs and adults.", "wrong"), ("Some chefs are adults", "right"),
        ("All adults are chefs and some chefs are not whales.", "right"), ("all chefs are adults.", "wrong"),
        ("Does it follow that some adults are whales?", "not checkable"), ("If all chefs are adults", "not checkable"),
        ("It does not follow that all chefs are adults.", "not checkable"), ("All adults are dogs.", "not checkable"),
        ("All adults are not chefs.", "not checkable"), ("The answer is No.", "not checkable"),
    ],
)  # fmt: skip
def test_a_line_is_checked_by_what_follows(line: str, verdict: str) -> None:
    question = "1. All adults are chefs. 2. Some chefs are not whales. Does it follow that: Some adults are whales?"
    steps = TASK.check_steps(line, Problem("", "syllogisms", question, "No", {"terms": ["adults", "chefs", "whales"]}))
    assert steps is not None and [step.verdict for step in steps] == [verdict]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("<answer>Yes</answer>", 1.0), ("<answer> Yes\n</answer>", 1.0), ("<answer>No</answer>", 0.0), ("Yes", 0.0),
        ("<answer>Yes or No</answer>", 1 / 3), ("<answer></answer>", 0.0), ("<answer>yes</answer>", 0.0),
        ("<answer>No</answer><answer>Yes</answer>", 0.0),
    ],
)  # fmt: skip
def test_the_published_reward(written: str, value: float) -> None:
    (reward,) = as_published([written], [Problem("", "syllogisms", "", "No", {"published_answer": "Yes"})])
    assert reward.value == pytest.approx(value)


def test_answers_without_a_label_earn_nothing_and_are_ungradable() -> None:
    (reward,) = as_published(["<answer>Yes</answer>"], [Problem("", "syllogisms", "", "Yes", {})])
    assert reward.value is None and reward.verdict == "ungradable"
