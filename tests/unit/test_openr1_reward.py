"""OpenR1's rewards on completions worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks import rollout_log
from recipes import rewards
from recipes.openr1 import reward
from recipes.rewards import Reward, problem_from_columns

PROBLEM = problem_from_columns("math", "4", "{}")


def accuracy(*pairs: tuple[str, str]) -> list[float | None]:
    texts, golds = zip(*pairs, strict=True)
    return [
        judged.value for judged in reward.accuracy(texts, [problem_from_columns("math", gold, "{}") for gold in golds])
    ]


def test_accuracy_judges_the_last_box_as_mathematics() -> None:
    assert accuracy(
        (r"so \boxed{\frac{1}{2}}", "0.5"),
        (r"first \boxed{3}, no: \boxed{4}", "4"),
        (r"\boxed{4}, no: \boxed{3}", "4"),
        ("the answer is 4", "4"),
        ("", "4"),
    ) == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_an_unusable_gold_answer_gives_no_reward_rather_than_a_wrong_one() -> None:
    assert accuracy((r"\boxed{4}", "")) == [None]


def test_the_sum_keeps_the_verdict_and_the_broken_form_apart() -> None:
    loaded = rewards.load(
        [
            {"function": "recipes.openr1.reward.accuracy", "weight": 2.0},
            {"function": "recipes.openr1.reward.boxed", "weight": 0.5},
        ]
    )
    texts, golds = [r"\boxed{4}", r"\boxed{5}", "none", r"\boxed{4}"], ["4", "4", "4", ""]
    totals = rewards.total(loaded, texts, [problem_from_columns("math", gold, "{}") for gold in golds])
    assert totals == [
        Reward(2.5, "correct", False),
        Reward(0.5, "wrong", False),
        Reward(0.0, "no_answer", True),
        Reward(0.5, "ungradable", False),
    ]
    assert rollout_log.verdict_rates(totals) == {"accuracy": 0.25, "wrong_answer_rate": 0.25, "format_error_rate": 0.25}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think><answer>b</answer>", 1.0),
        ("<think>a\nb</think>\n <answer>\\boxed{4}</answer>", 1.0),
        ("<think>a</think>b<answer>c</answer>", 0.0),
        ("x<think>a</think><answer>b</answer>", 0.0),
        ("<think>a</think><answer>b</answer> and more", 0.0),
        ("<answer>b</answer>", 0.0),
        ("", 0.0),
    ],
)
def test_tags_must_hold_the_whole_completion(text: str, expected: float) -> None:
    assert reward.tags([text], [PROBLEM]) == [Reward(expected, format_error=not expected)]


def test_a_box_counts_only_when_it_closes() -> None:
    texts = [r"\boxed{4}", r"\boxed{4", "4", r"\boxed{\frac{1}{2}}"]
    assert [judged.value for judged in reward.boxed(texts, [PROBLEM] * 4)] == [1.0, 0.0, 0.0, 1.0]


@given(st.text(max_size=300))
def test_hostile_text_gets_a_number_and_never_an_exception(text: str) -> None:
    assert reward.tags([text], [PROBLEM])[0].value in (0.0, 1.0)
    assert reward.boxed([text], [PROBLEM])[0].value in (0.0, 1.0)
    assert accuracy((text, "4"))[0] in (0.0, 1.0)
