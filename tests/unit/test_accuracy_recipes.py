"""The runs of the document on the accuracy of rewards: which settings they cross, and that nothing else differs."""

from __future__ import annotations

import pytest

from contracts.run_file import EVERYWHERE, Run
from recipes import rewards
from recipes.runs import load_run, run_names

RUNS = [name for name in run_names() if name.split("/")[0] in ("code", "gomoku", "doudizhu")]


def argument(run: Run, name: str) -> int | None:
    """An argument of the run's only reward."""
    (reward,) = run.rewards
    value: int | None = reward.get("arguments", {}).get(name)
    return value


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("scale", EVERYWHERE)
def test_the_rewards_load_and_take_their_arguments(name: str, scale: str) -> None:
    run = load_run(name, scale)
    for function, _ in rewards.load(run.rewards):
        assert function((), ()) == []
    assert run.framework == "verl" and run.algorithm == "grpo"


def test_the_settings_of_the_document_are_all_there() -> None:
    full = {name: load_run(name, "full") for name in RUNS}
    code = {(run.model, argument(run, "tests")) for name, run in full.items() if name.startswith("code/")}
    assert code == {(model, tests) for model in ("qwen2.5-3b", "qwen2.5-7b") for tests in (2, 8, 32)}
    boards = {(run.stages[0].dataset, argument(run, "count")) for name, run in full.items() if "x" in name.split("/")[1]
              and argument(run, "count")}  # fmt: skip
    assert boards == {(f"gomoku_{size}_train", count) for size in ("9x9", "15x15") for count in (8, 64, 512)}
    cards = {(run.model, argument(run, "count")) for name, run in full.items() if name.startswith("doudizhu/")}
    models = ("qwen2.5-7b-instruct", "deepseek-r1-distill-qwen-7b")
    assert cards >= {(model, count) for model in models for count in (8, 64, 512)}
    groups = {name: run.stages[0].batch["samples_per_prompt"] for name, run in full.items()}
    assert {name for name, size in groups.items() if size == 4} == {"gomoku/9x9-64-g4", "doudizhu/instruct-64-g4"}
    assert {groups["gomoku/9x9-64"], groups["doudizhu/instruct-64"]} == {8}


def test_only_the_reward_differs_between_runs_that_are_compared() -> None:
    compared = (
        ["code/tests-2", "code/tests-8", "code/tests-32"],
        ["gomoku/9x9-8", "gomoku/9x9-512", "gomoku/9x9-engine"],
        ["doudizhu/instruct-8", "doudizhu/instruct-512", "doudizhu/instruct-exact"],
    )
    for names in compared:
        assert len({str(load_run(name, "full").stages) for name in names}) == 1
