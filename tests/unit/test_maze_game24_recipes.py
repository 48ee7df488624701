"""The recipes of maze and 24 points: their rewards by hand, running statistics, and the runs that they state."""

from __future__ import annotations

import importlib.util
import json
import math
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.run_file import EVERYWHERE
from frameworks.adapter import Paths
from frameworks.verl import adapter, running_advantage
from frameworks.verl.command import trainer_overrides
from recipes import rewards
from recipes.game24 import reward as game24
from recipes.maze import reward as maze
from recipes.runs import load_run, run_names
from studies.credit import runs
from tasks.maze.rules import Maze
from tests.budgets import examples
from tests.user_errors import refused

PATHS = Paths(problems=Path("problems"), model=Path("model"), work=Path("work"))
MAZE = rewards.problem_from_columns("maze", "RR", json.dumps(Maze(4, 4, (2, 0), ((1, 3), (3, 2))).meta()))
CARDS = rewards.problem_from_columns("game24", "8/(3-8/3)", json.dumps({"cards": [8, 3, 8, 3]}))


@pytest.mark.parametrize(
    ("completion", "documented", "published"),
    [
        ("<answer>RR</answer>", 1 - 0.005 * 493, 1 - 0.001 * 493),
        ("x" * 493 + "<answer>RR</answer>", 1.0, 0.95),  # reasoning breaks the published format
        ("x" * 494 + "<answer>R</answer>", 0.0, -0.05),
        ("x" * 498 + "<answer>RRRL\n", 0.0 - 0.2 - 0.005 * 1, -0.05 - 0.001 * 1 + 1),  # not closed
        ("<answer>URR</answer>", -0.005 * 492, 1 - 0.001 * 492),  # off the board
        ("", -0.2 - 0.005 * 512, -0.05 - 0.001 * 512),
    ],
)  # fmt: skip
def test_the_two_maze_rewards(completion: str, documented: float, published: float) -> None:
    assert maze.as_documented([completion], [MAZE])[0].value == pytest.approx(documented)
    assert maze.as_published([completion], [MAZE])[0].value == pytest.approx(published)


def test_maze_rewards_of_an_unusable_problem_and_other_lengths() -> None:
    bad = rewards.problem_from_columns("maze", "RR", "{}")
    for function in (maze.as_documented, maze.as_published):
        assert function(["<answer>RR</answer>"], [bad])[0].value is None
    assert maze.as_documented(["<answer>RR</answer>"], [MAZE], target=19, per_character=1.0)[0].value == 1.0


def test_the_parts_of_the_cards_reward() -> None:
    right = "8/3=8/3 left 3 8 8/3\n3 - 8/3 = 1/3, left 8 1/3\n8 / 1/3 = 24, left 24\n<answer>8/(3-8/3)</answer>"
    wrong = "8+3=12 left 3 8 12\n3*8=24\n<answer>3*8</answer>"
    texts = [right, wrong, "hm"]
    assert [one.value for one in game24.outcome(texts, [CARDS] * 3)] == [1.0, 0.35, 0.0]
    assert [one.value for one in rewards.right_steps(texts, [CARDS] * 3)] == [1.0, 0.5, 0.0]
    assert [one.value for one in game24.length(texts, [CARDS] * 3)] == [1.0, 1.0, 1.0]
    assert game24.length_value(4) == 1.0 and game24.length_value(24) == pytest.approx(0.5)
    assert (
        game24.length_value(5) == pytest.approx(1 / (1 + math.exp(0.2 * (5 - 24))))
        and game24.length_value(10**6) < 1e-300
    )
    assert game24.outcome(["1"], [rewards.problem_from_columns("game24", "", "{}")])[0].value in (None, 0.0)


def test_running_statistics_by_hand() -> None:
    state = running_advantage.Running(step=0.1, largest=0.15)
    first = state.advantages([1.0, 0.0, 1.0, 0.0], ["a", "a", "a", "a"])
    assert first == pytest.approx([0.8660244, -0.8660244, 0.8660244, -0.8660244], rel=1e-5)
    second = state.advantages([1.0, 1.0, 0.0, 0.0], ["a", "a", "b", "b"])
    mean, deviation = 0.1 * 0.5 + 0.9 * 1.0, 0.1 * math.sqrt(1 / 3)
    assert second[:2] == pytest.approx([(1 - mean) / (deviation + 1e-6)] * 2)
    mean, deviation = 0.1 * mean, 0.1 * deviation
    assert second[2:] == pytest.approx([-mean / (deviation + 1e-6)] * 2)
    assert state.momentum == 0.15


@examples("built text")
@given(st.lists(st.floats(-2, 2), min_size=2, max_size=8))
def test_without_momentum_running_statistics_are_the_groups(values: list[float]) -> None:
    advantages = running_advantage.Running(0.0, 0.2).advantages(values, ["g"] * len(values))
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    assert advantages == pytest.approx([(value - mean) / (deviation + 1e-6) for value in values], abs=1e-6)


def test_running_statistics_reach_verl_by_name_and_environment() -> None:
    run = load_run("game24/grpo-running", "demo")
    arguments = trainer_overrides(run, run.stages[0], 0, PATHS, PATHS.work)
    assert arguments["algorithm.adv_estimator"][0] == running_advantage.NAME
    assert adapter.momentum_environment(run.stages[0]) == {running_advantage.VARIABLE: "[0.01, 0.2]"}
    plain = load_run("game24/grpo", "demo")
    assert trainer_overrides(plain, plain.stages[0], 0, PATHS, PATHS.work)["algorithm.adv_estimator"][0] == "grpo"
    assert adapter.momentum_environment(plain.stages[0]) == {}
    del run.stages[0].objective["momentum_max"]
    with refused("missing-setting"):
        trainer_overrides(run, run.stages[0], 0, PATHS, PATHS.work)


@pytest.mark.parametrize("scale", EVERYWHERE)
def test_verl_loads_the_running_statistics_at_both_scales(scale: str, tmp_path: Path, monkeypatch: Any) -> None:
    run = load_run("game24/grpo-running", scale)
    monkeypatch.setattr(adapter.VerlAdapter, "write_data", lambda *_: None)  # needs a tokenizer
    monkeypatch.setattr(adapter.trainer_environment, "take_gpus", lambda _: ["0"])
    paths = replace(PATHS, work=tmp_path)
    environment = adapter.VerlAdapter().prepare(run, run.stages[0], 0, paths).environment
    assert running_advantage.VARIABLE in environment
    modules = environment["VERL_USE_EXTERNAL_MODULES"].split(",")
    assert running_advantage.__name__ in modules and all(map(importlib.util.find_spec, modules))


@pytest.mark.parametrize("scale", EVERYWHERE)
def test_the_runs_of_the_study_of_credit_differ_in_credit_alone(scale: str) -> None:
    alike = []
    for name in runs.RUNS.values():
        run = load_run(name, scale)
        (stage,) = run.stages
        optimizer = {key: value for key, value in stage.optimizer.items() if key != "critic_learning_rate"}
        batch = {"prompts_per_step": stage.batch["prompts_per_update"], **stage.batch}
        objective = [stage.objective[key] for key in ("kl_coefficient", "clip_ratio", "loss_aggregation")]
        objective.append(stage.objective.get("entropy_coefficient", 0.0))
        training = [run.model, run.prompt, stage.dataset, stage.levels, stage.steps, stage.rollout, stage.checkpoints]
        alike.append([*training, optimizer, batch, objective, run.evaluation, run.rewards[0]])
    assert all(one == alike[0] for one in alike)
    differing = [len(load_run(name, scale).rewards) for name in runs.RUNS.values()]
    assert differing == [1, 1, 1, 2]


def test_the_runs_share_what_they_should() -> None:
    names = [name for name in run_names() if name.startswith(("maze/", "game24/"))]
    assert len(names) == 13
    loaded = {name: load_run(name, "full") for name in names}
    assert {run.stages[0].batch["samples_per_prompt"] for name, run in loaded.items() if "/ppo" in name} == {1, 8}
    assert loaded["maze/ppo-1.5b"].stages == loaded["maze/ppo-0.5b"].stages
    for name in ("maze/grpo-0.5b", "game24/grpo"):
        through_trl, through_verl = ({**vars(loaded[run].stages[0]), "native": None} for run in (f"{name}-trl", name))
        assert through_trl == through_verl
    for name in names:
        for scale in ("demo", "full"):
            rewards.load(load_run(name, scale).rewards)
