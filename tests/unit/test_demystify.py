"""The three runs of demystify-long-cot differ in the reward alone, and each reward is the published one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.run_file import EVERYWHERE
from recipes import model_tokens, rewards
from recipes.rewards import problem_from_columns
from recipes.runs import load_run

NAMES = [f"demystify/qwen2.5-math-7b-{kind}" for kind in ("classic", "cosine", "cosine-repetition")]
PROBLEM = problem_from_columns("math", "4", "{}")


@pytest.mark.parametrize("scale", EVERYWHERE)
def test_only_the_reward_differs(scale: str) -> None:
    first, *others = (load_run(name, scale) for name in NAMES)
    for other in others:
        same = {"name": first.name, "file": first.file, "title": first.title, "deviations": first.deviations}
        assert other.rewards != first.rewards
        assert replace(other, rewards=first.rewards, **same) == first  # type: ignore[arg-type]


def test_what_each_pays_for_the_same_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_tokens, "encode", str.split)
    monkeypatch.setattr(model_tokens, "response_limit", lambda: 1000)
    distinct, repeated = " ".join(map(str, range(499))), " ".join(["and so on"] * 166)
    texts = [rf"{distinct} \boxed{{4}}", rf"{distinct} \boxed{{5}}", rf"{repeated} on \boxed{{4}}", "no " * 984]
    paid = [
        [one.value for one in rewards.total(rewards.load(load_run(name, "full").rewards), texts, [PROBLEM] * 4)]
        for name in NAMES
    ]
    assert paid[0] == [1.0, 0.0, 1.0, 0.0]
    assert paid[1] == pytest.approx([1.5, -5.0, 1.5, -10.0])
    # of 500 tokens the first 3 begin no repeated 40-gram, and the last two are in none
    assert paid[2] == pytest.approx([1.5, -5.0, 1.5 - 0.05 * 495, -10.0 - 0.05 * 983])
