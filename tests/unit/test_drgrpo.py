"""Dr. GRPO's reward for its R1 template, and its three templates for training and evaluation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.run_settings import protocol_of
from recipes.drgrpo.reward import answer_tag
from recipes.rewards import Reward, problem_from_columns
from recipes.runs import load_run
from tasks import prompts

PROBLEM = problem_from_columns("math", "4", "{}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think> <answer>4</answer>", Reward(1.0, "correct", False)),
        ("<think>a</think> <answer>so \\boxed{4}</answer>", Reward(1.0, "correct", False)),
        ("<think>a</think> <answer>5</answer>", Reward(0.0, "wrong", False)),
        ("<think>a</think><answer>4</answer>", Reward(0.0, "format_error", True)),
        ("<think>a</think>\n<answer>4</answer>", Reward(0.0, "format_error", True)),
        ("<think>a</think> <answer>4", Reward(0.0, "format_error", True)),
        ("<think>a</think> <answer>5</answer> <answer>4", Reward(1.0, "correct", False)),  # as published
        ("\\boxed{4}", Reward(0.0, "format_error", True)),
    ],
)
def test_the_reward_wants_one_space_and_takes_the_last_answer(text: str, expected: Reward) -> None:
    assert answer_tag([text], [PROBLEM]) == [expected]
    assert answer_tag([text], [problem_from_columns("math", "", "{}")])[0].value is None


@given(st.text(max_size=200))
def test_any_text_gets_a_number(text: str) -> None:
    for one in answer_tag([text, f"</think> <answer>{text}</answer>"], [PROBLEM] * 2):
        assert one.value in (0.0, 1.0)


@pytest.mark.parametrize("name", ["", "-r1", "-no-template", "-trl"])
def test_a_run_is_evaluated_with_the_template_that_it_is_trained_with(name: str) -> None:
    run = load_run(f"drgrpo/qwen2.5-math-7b{name}", "full")
    assert protocol_of(run).prompt == run.prompt
    assert (run.stages[0].objective["loss_aggregation"], run.stages[0].objective["scale_rewards"]) == (
        "max_length_mean",
        "none",
    )


def test_the_templates_are_the_published_texts() -> None:
    rendered = prompts.load("oat-r1").render("2+2?", None)
    assert rendered.startswith(
        "A conversation between User and Assistant. The User asks a question, and the Assistant solves"
    )
    assert rendered.endswith("<answer> answer here </answer>.\nUser: 2+2?\nAssistant: <think>")
    assert prompts.load("question-alone").render("2+2?", None) == "2+2?"
