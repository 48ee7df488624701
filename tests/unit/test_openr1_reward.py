"""OpenR1's rewards on completions worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.openr1 import reward


def said(*texts: str) -> list[list[dict[str, str]]]:
    return [[{"role": "assistant", "content": text}] for text in texts]


def accuracy(*pairs: tuple[str, str], **more: object) -> list[float | None]:
    texts, golds = zip(*pairs, strict=True)
    n = len(pairs)
    return reward.accuracy(said(*texts), answer=golds, task=["math"] * n, meta=["{}"] * n, **more)


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


def test_wrong_answers_are_logged_apart_from_missing_ones() -> None:
    logged: dict[str, float] = {}
    accuracy((r"\boxed{4}", "4"), (r"\boxed{5}", "4"), ("none", "4"), ("", "4"), log_metric=logged.__setitem__)
    assert logged == {"wrong_answer": 0.25}


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
    assert reward.tags(said(text)) == [expected]


def test_a_box_counts_only_when_it_closes() -> None:
    assert reward.boxed(said(r"\boxed{4}", r"\boxed{4", "4", r"\boxed{\frac{1}{2}}")) == [1.0, 0.0, 0.0, 1.0]


@given(st.text(max_size=300))
def test_hostile_text_gets_a_number_and_never_an_exception(text: str) -> None:
    assert reward.tags(said(text))[0] in (0.0, 1.0)
    assert reward.boxed(said(text))[0] in (0.0, 1.0)
    assert accuracy((text, "4"))[0] in (0.0, 1.0)
