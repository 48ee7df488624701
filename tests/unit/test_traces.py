"""The demo model's traces: right where they should be, wrong where they should be, told in the asked format."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from eval.grading import Item, grade
from recipes.demo_model.traces import LOOK_BACK, Mixture, completion, examples
from recipes.openr1.reward import TAGS
from recipes.tasks import arithmetic

PROBLEMS = arithmetic.generate(60, ["expressions", "words"], "train", 0)
RIGHT = Mixture(right_order=1.0, look_back=0.0, in_words=0.5, format_kept=1.0, slip=0.0)
LOOKING_BACK = Mixture(right_order=0.0, look_back=1.0, in_words=0.0, format_kept=1.0, slip=0.0)
LEFT_TO_RIGHT = Mixture(right_order=0.0, look_back=0.0, in_words=0.5, format_kept=1.0, slip=0.0)


def verdicts(mixture: Mixture, tags: bool, seed: int) -> set[str]:
    rng = random.Random(seed)
    items = [
        Item(
            "arithmetic",
            p.answer or "",
            completion(arithmetic.expression_of(p), tags, mixture, rng),
            None,
            None,
            "none",
        )
        for p in PROBLEMS
    ]
    return {result.verdict for result in grade(items, workers=1)}


@given(st.booleans(), st.integers(0, 50))
def test_each_habit_gives_the_verdict_that_it_stands_for(tags: bool, seed: int) -> None:
    assert verdicts(RIGHT, tags, seed) == {"correct"}
    assert verdicts(LOOKING_BACK, tags, seed) == {"correct"}
    assert verdicts(LEFT_TO_RIGHT, tags, seed) == {"wrong"}


def test_looking_back_says_so_and_tags_match_the_reward_pattern() -> None:
    text = completion(arithmetic.expression_of(PROBLEMS[0]), True, LOOKING_BACK, random.Random(0))
    assert LOOK_BACK in text and TAGS.match(text)


def test_examples_take_the_prompts_in_turn_and_never_a_held_out_problem() -> None:
    prompts = [{"system": "Use <think> tags.", "user": "{question}"}, {"system": None, "user": "Q: {question}"}]
    stream = examples(prompts, RIGHT, 0)
    rows = [next(stream) for _ in range(40)]
    assert [row["prompt"][0]["role"] for row in rows] == ["system", "user"] * 20  # type: ignore[index]
    held_out = {p.question for p in arithmetic.generate(300, ["expressions"], "test", 0)}
    assert not any(row["prompt"][-1]["content"] in held_out for row in rows)  # type: ignore[index]
