"""Length and repetition terms against the published rules, read a second time here, and their bounds on any text."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks import adapter
from recipes import model_tokens, reward_shaping, rewards
from recipes.rewards import problem_from_columns
from recipes.runs import load_run
from tests.budgets import examples
from tests.hostile_text import MARKS
from tests.user_errors import refused

LIMIT = 40
PROBLEM = problem_from_columns("math", "4", "{}")
RIGHT, WRONG = r"\boxed{4}", r"\boxed{5}"
WORDS = st.lists(st.sampled_from(["a", "b", "A", "wait", *MARKS]), max_size=60)


@pytest.fixture(autouse=True)
def _words_are_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_tokens, "encode", lambda text: text.split(" ") if text else [])
    monkeypatch.setattr(model_tokens, "response_limit", lambda: LIMIT)


def cosine(text: str, **arguments: Any) -> float | None:
    (judged,) = reward_shaping.cosine([text], [PROBLEM], **arguments)
    return judged.value


def answer(box: str, length: int) -> str:
    """A completion of so many tokens that ends with a box."""
    return " ".join(["a"] * (length - 1) + [box])


def published_cosine(length: int, right: bool, maximum: int) -> float:
    """As the published code computes it: minimum and maximum of each kind, swapped for wrong answers; margin 16."""
    if length + 16 >= maximum:
        return -10.0
    low, high = (1.0, 2.0) if right else (0.0, -10.0)
    return low + 0.5 * (high - low) * (1.0 + math.cos(length / maximum * math.pi))


def test_cosine_is_the_published_one() -> None:
    for length in range(1, LIMIT + 10):
        for box in (RIGHT, WRONG):
            expected = published_cosine(length, box == RIGHT, LIMIT)
            assert cosine(answer(box, length), margin=16) == pytest.approx(expected)


def test_cosine_wants_right_answers_short_and_wrong_ones_long() -> None:
    right, wrong = ([cosine(answer(box, length)) for length in range(1, LIMIT)] for box in (RIGHT, WRONG))
    assert right == sorted(right, reverse=True) and wrong == sorted(wrong)  # type: ignore[type-var]
    assert max(wrong) < 0 < 1 < min(right)  # type: ignore[type-var, operator]
    assert cosine(answer(RIGHT, LIMIT // 2)) == pytest.approx(1.5)
    assert cosine(answer(RIGHT, LIMIT)) == cosine(answer(WRONG, LIMIT + 1)) == -10.0


def test_cosine_judges_and_leaves_unusable_problems_out() -> None:
    given_rewards = reward_shaping.cosine(
        [RIGHT, WRONG, "none", RIGHT], [*[PROBLEM] * 3, problem_from_columns("math", "", "{}")]
    )
    assert [one.verdict for one in given_rewards] == ["correct", "wrong", "no_answer", "ungradable"]
    assert given_rewards[3].value is None


def published_over_long(length: int, maximum: int, buffer: int) -> Fraction:
    """Equation 13 of DAPO."""
    if length <= maximum - buffer:
        return Fraction(0)
    return Fraction(maximum - buffer - length, buffer) if length <= maximum else Fraction(-1)


@given(st.integers(0, 3 * LIMIT), st.integers(1, LIMIT))
def test_soft_over_long_is_the_published_one(length: int, buffer: int) -> None:
    (judged,) = reward_shaping.soft_over_long([" ".join("a" * length)], [PROBLEM], buffer=buffer)
    assert judged.value == pytest.approx(float(published_over_long(length, LIMIT, buffer)))


def published_share(text: str, size: int) -> float:
    """The published share of repeated n-grams of words, counted here instead of put into a set."""
    text_words = text.lower().split()
    counts = Counter(tuple(text_words[start : start + size]) for start in range(len(text_words) - size + 1))
    return -sum(count - 1 for count in counts.values()) / counts.total() if counts else 0.0


def published_dense(tokens: list[str], size: int) -> int:
    """How many places the published code marks."""
    marked = [0] * (len(tokens) + size)
    for start in range(len(tokens) - size + 1):
        gram = tokens[start : start + size]
        if any(tokens[before : before + size] == gram for before in range(start)):
            marked[start : start + size] = [1] * size
    return sum(marked)


@pytest.mark.slow
@examples("any text")
@given(WORDS, st.integers(1, 5))
def test_repetition_is_the_published_one(text_words: list[str], size: int) -> None:
    text = " ".join(text_words)
    (share,) = reward_shaping.repetition([text], [PROBLEM], ngram=size)
    assert share.value == pytest.approx(published_share(text, size))
    (number,) = reward_shaping.repeated_tokens([text], [PROBLEM], ngram=size)
    tokens = text.split(" ") if text else []
    assert number.value == -published_dense(tokens, size) and number.value >= -len(tokens)
    (of_tokens,) = reward_shaping.repetition([text], [PROBLEM], ngram=size, unit="tokens")
    assert (of_tokens.value == 0) == (number.value == 0)


def test_repetition_by_hand() -> None:
    texts = ["", "a b", "a b c a b c", "A b a B", "a a a a"]
    assert [one.value for one in reward_shaping.repetition(texts, [PROBLEM] * 5, ngram=2)] == [
        0.0, 0.0, pytest.approx(-2 / 5), pytest.approx(-1 / 3), pytest.approx(-2 / 3),
    ]  # fmt: skip
    assert [one.value for one in reward_shaping.repeated_tokens(texts, [PROBLEM] * 5, ngram=2)] == [0, 0, -3, 0, -3]


@given(WORDS.map(" ".join) | st.text(max_size=200))
def test_any_text_gets_a_value_within_bounds(text: str) -> None:
    value = cosine(text)
    assert value is not None and -10 <= value <= 2
    (long,), (share,) = (
        reward_shaping.soft_over_long([text], [PROBLEM], buffer=9),
        reward_shaping.repetition([text], [PROBLEM], ngram=3),
    )
    assert -1 <= long.value <= 0 and -1 < share.value <= 0  # type: ignore[operator]


def run_with(function: str, **arguments: Any) -> Any:
    content = {"function": f"recipes.reward_shaping.{function}", "weight": 0.5, "arguments": arguments}
    base = load_run("openr1/qwen2.5-math-7b", "demo")
    return base.__class__(**{**base.__dict__, "rewards": (*base.rewards, content)})


def test_terms_are_added_by_weight_to_the_rewards_of_any_run() -> None:
    run = run_with("soft_over_long", buffer=20)
    loaded = rewards.load(json.loads(rewards.environment(run.rewards)[rewards.VARIABLE]))
    (total,) = rewards.total(loaded, [answer(RIGHT, 30)], [PROBLEM])
    assert total == (1.0 + 1.0 - 0.5 * 10 / 20, "correct", False)


def test_equal_rewards_of_few_binary_digits_have_an_exact_mean_in_float32() -> None:
    """Others may have a mean and a std of a unit in the last place, and so an advantage."""
    term = {"function": "recipes.reward_shaping.soft_over_long", "weight": 0.3, "arguments": {"buffer": LIMIT}}
    texts = [" ".join("a" * length) for length in range(1, LIMIT)]
    plain, rounded = (
        [judged.value for judged in rewards.total(rewards.load([one]), texts, [PROBLEM] * len(texts))]
        for one in (term, term | {"multiple_of": 2.0**-10})
    )
    assert rounded == pytest.approx(plain, abs=2.0**-11)

    def noise(values: list[Any]) -> float:
        groups = [np.full(size, value, np.float32) for size in range(2, 65) for value in values]
        return max(float(abs(group - group.mean()).max()) for group in groups)

    assert noise(plain) > 0 and noise(rounded) == 0


@pytest.mark.parametrize(
    ("function", "arguments", "code"),
    [
        ("soft_over_long", {"buffer": 0}, "argument-out-of-range"),
        ("soft_over_long", {"buffer": LIMIT + 1}, "argument-out-of-range"),
        ("soft_over_long", {}, "reward-cannot-be-loaded"),
        ("repetition", {"ngram": 0}, "argument-out-of-range"),
        ("repetition", {"ngram": 2, "unit": "letters"}, "argument-out-of-range"),
        ("repeated_tokens", {"n": 2}, "reward-cannot-be-loaded"),
        ("cosine", {"length": 5}, "reward-cannot-be-loaded"),
    ],
)
def test_a_wrong_argument_is_refused_before_training(function: str, arguments: dict[str, Any], code: str) -> None:
    run = run_with(function, **arguments)
    with refused(code):
        adapter.load(run.framework).check(run)
