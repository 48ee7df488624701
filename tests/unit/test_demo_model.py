"""The demo model's traces: right where they should be, wrong where they should be, told in the asked format."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading import Item, grade
from recipes import models, rewards
from recipes.demo_model import mixture
from recipes.demo_model.training import Example, in_batches_of_similar_length
from recipes.logicrl.reward import knights_knaves
from recipes.openr1.reward import TAGS
from recipes.tinyzero.reward import countdown
from tasks import prompts, task_yaml
from tasks.arithmetic import demo_traces as arithmetic_traces
from tasks.arithmetic import problems as arithmetic
from tasks.countdown import demo_traces as countdown_traces
from tasks.countdown import problems as countdown_problems
from tasks.expressions import evaluate
from tasks.knights_knaves import demo_traces as knights_knaves_traces
from tasks.knights_knaves import problems as knights_knaves_problems
from tasks.knights_knaves import puzzles as knights_knaves_puzzles
from tasks.problems import Problem, split_of
from tests.user_errors import refused

DEMOS = {
    name: task_yaml.settings(name)["demo"] for name in task_yaml.task_names() if "demo" in task_yaml.settings(name)
}
PROBLEMS = arithmetic.generate(60, "train", 0)
RIGHT = arithmetic_traces.Habits(right_order=1.0, look_back=0.0, in_words=0.5, format_kept=1.0, slip=0.0)
LOOKING_BACK = replace(RIGHT, right_order=0.0, look_back=1.0)
LEFT_TO_RIGHT = replace(RIGHT, right_order=0.0)


def verdicts(habits: arithmetic_traces.Habits, prompt: str, seed: int) -> set[str]:
    rng = random.Random(seed)
    texts = [arithmetic_traces.completion(p, prompts.load(prompt), habits, rng) for p in PROBLEMS]
    items = [
        Item("arithmetic", p.answer or "", text, None, None, "none") for p, text in zip(PROBLEMS, texts, strict=True)
    ]
    return {result.verdict for result in grade(items, workers=1)}


@pytest.mark.slow
@given(st.sampled_from(["boxed", "r1-tags"]), st.integers(0, 50))
def test_each_habit_of_arithmetic_gives_the_verdict_that_it_stands_for(prompt: str, seed: int) -> None:
    assert verdicts(RIGHT, prompt, seed) == {"correct"}
    assert verdicts(LOOKING_BACK, prompt, seed) == {"correct"}
    assert verdicts(LEFT_TO_RIGHT, prompt, seed) == {"wrong"}


def test_looking_back_says_so_and_tags_match_the_reward_pattern() -> None:
    text = arithmetic_traces.completion(PROBLEMS[0], prompts.load("r1-tags"), LOOKING_BACK, random.Random(0))
    assert arithmetic_traces.LOOK_BACK in text and TAGS.match(text)


def judged(reward: rewards.RewardFunction, prompt: prompts.Prompt, problem: Problem, completion: str) -> rewards.Reward:
    """What the recipe's reward gives for a trace."""
    return reward([prompt.assistant + completion], [problem])[0]


@given(st.lists(st.integers(1, 20), min_size=3, max_size=3))
def test_every_countdown_result_is_the_value_of_its_expression(numbers: list[int]) -> None:
    told = list(countdown_traces.combinations(numbers))
    assert len(told) == 9
    for line in told:
        for result in line.results:
            value, used = evaluate(result.expression)
            assert value == result.value and sorted(used) == sorted(numbers)


COUNTDOWN = DEMOS["countdown"]
PERSISTENT = replace(countdown_traces.Habits(**COUNTDOWN["habits"] | COUNTDOWN["skill"]), slip=0.0)


def test_persistent_countdown_traces_are_right_wherever_division_is_not_needed() -> None:
    problems = countdown_traces.problems(**COUNTDOWN["problems"], seed=0)[::20]
    rng, prompt = random.Random(0), prompts.load("tinyzero-base")
    right = 0
    for problem in problems:
        text = countdown_traces.completion(problem, prompt, PERSISTENT, rng)
        reached = " yes\n" in text
        assert judged(countdown, prompt, problem, text).verdict == ("correct" if reached else "wrong")
        right += reached
    assert right > 0.9 * len(problems)
    early = replace(PERSISTENT, persistent=0.0)
    stopped = [countdown_traces.completion(p, prompt, early, rng) for p in problems]
    given_values = {judged(countdown, prompt, p, text).value for p, text in zip(problems, stopped, strict=True)}
    assert given_values == {0.1, 1.0}
    assert max(text.count("\n") for text in stopped) == early.early


PUZZLES = DEMOS["knights_knaves"]
THOROUGH = replace(knights_knaves_traces.Habits(**PUZZLES["habits"] | PUZZLES["skill"]), slip=0.0)


@pytest.mark.parametrize("people", [2, 3])
def test_thorough_knights_and_knaves_traces_are_right_and_careless_ones_not_always(people: int) -> None:
    problems = knights_knaves_problems.generate(
        split="train", seed=0, **PUZZLES["problems"] | {"rows": 100, "people": [people]}
    )
    rng, prompt = random.Random(0), prompts.load("logicrl-base")

    def values(habits: knights_knaves_traces.Habits) -> set[float | None]:
        told = [knights_knaves_traces.completion(p, prompt, habits, rng) for p in problems]
        return {judged(knights_knaves, prompt, p, text).value for p, text in zip(problems, told, strict=True)}

    assert values(THOROUGH) == {3.0}
    careless = replace(THOROUGH, thorough=0.0)
    assert values(careless) == {3.0, -0.5}
    assert values(replace(careless, two=1.0)) == ({3.0} if people == 2 else {3.0, -0.5})
    assert values(replace(careless, unchecked=1.0)) == {3.0, -0.5}
    assert values(replace(THOROUGH, format_kept=0.0)) == {-3.0}


@pytest.mark.slow
@pytest.mark.parametrize("task", DEMOS)
def test_the_mixture_begins_with_skills_and_holds_every_prompt_and_no_held_out_problem(task: str) -> None:
    demo = dict(DEMOS[task])
    if "rows" in demo["problems"]:
        demo["problems"] = demo["problems"] | {"rows": min(300, demo["problems"]["rows"])}
    rows = mixture.rows(task, demo, 300, 0.5, 0)
    assert len(rows) == 300 and {row.prompt.name for row in rows} == set(demo["prompts"])
    with_answer = ["</think><answer>" in row.completion for row in rows if row.prompt.assistant]
    assert not with_answer or (all(with_answer[:150]) and not all(with_answer))
    held_out = {p.question for p in arithmetic.generate(300, "test", 0, kinds=["expressions"])}
    for row in rows:
        assert row.question not in held_out
        if task == "countdown":
            target, *numbers = (int(number) for number in re.findall(r"\d+", row.question))
            assert split_of(countdown_problems.identity(numbers, target)) == "train"
        if task == "knights_knaves":
            _, statements = knights_knaves_puzzles.read_question(row.question)
            assert split_of(knights_knaves_problems.identity(statements)) == "train"


def test_every_task_with_demo_traces_has_a_base_model_without_an_entry() -> None:
    assert {f"demo-{task.replace('_', '-')}" for task in DEMOS} < set(models.names())
    assert models.find("demo") == models.find("demo-arithmetic")
    with refused("unknown-name"):
        models.find("demo-countdwn")


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.integers(1, 9), st.integers(0, 9))
def test_batches_of_similar_length_hold_every_example_once_and_near_its_place(
    lengths: list[int], batch: int, seed: int
) -> None:
    examples = [Example([index], [0] * length) for index, length in enumerate(lengths)]
    batches = in_batches_of_similar_length(examples, batch, seed, window=4)
    assert sorted(example for rows in batches for example in rows) == sorted(examples)
    for number, rows in enumerate(batches):
        assert {example.prompt[0] // (4 * batch) for example in rows} == {number // 4}
