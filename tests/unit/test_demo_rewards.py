"""At demo scale rewards can be earned by what a run's base model writes, and right answers earn more than others."""

from __future__ import annotations

import json
import random
from statistics import fmean

import pytest

from recipes import model_tokens, models, rewards
from recipes.runs import load_run
from tasks import prompts, registry, sandbox
from tests import loaded_runs

TRACES = 24


def demo_runs() -> list[str]:
    """One run of each base model, prompt and reward; controls have a reward that does not say what is right."""
    runs = [run for run in loaded_runs.runs("demo") if not run.control]
    by_settings = {(run.model, run.prompt, json.dumps(run.rewards)): run.name for run in runs}
    return sorted(by_settings.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", demo_runs())
def test_right_traces_of_the_base_model_earn_more(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_tokens, "encode", str.split)
    monkeypatch.setattr(model_tokens, "response_limit", lambda: 96)
    run = load_run(name, "demo")
    if name.startswith("code/") and (why := sandbox.why_unavailable()):
        pytest.skip(f"no sandbox on this machine: {why}")
    entry = models.find(run.model)
    demo, traces, prompt = (
        models.demo_settings(entry),
        registry.get(entry["demo_task"]).traces,
        prompts.load(run.prompt),
    )
    assert run.prompt in demo["prompts"]  # the only ones that the model has seen
    few = {"rows": TRACES} if "rows" in demo["problems"] else {}
    rng = random.Random(name)
    problems = rng.sample(traces.problems(seed=0, **demo["problems"] | few), TRACES)
    habits = traces.Habits(**demo["habits"])
    texts = [(prompt.assistant or "") + traces.completion(one, prompt, habits, rng) for one in problems]
    paid = rewards.total(rewards.load(run.rewards), texts, problems)
    right, other = [], []
    for one in paid:
        assert one.value is not None
        (right if one.verdict == "correct" else other).append(one.value)
    assert fmean(right) > fmean(other)
