"""Controls of recipes: run files of one line, with rewards that do not say what is right."""

from pathlib import Path

import pytest

from contracts.run_file import EVERYWHERE, RECIPES, parse_run
from recipes import controls, rewards
from recipes.rewards import Reward
from recipes.runs import load_run
from tasks.problems import Problem
from tests.user_errors import refused

BASE = "openr1/qwen2.5-math-7b"
PROBLEM = Problem("p", "arithmetic", "", "6", {})
RIGHT, WRONG, BARE = r"so \boxed{6}", r"so \boxed{7}", "six"


def total_rewards(kind: str, completions: list[str]) -> list[Reward]:
    run = load_run(f"{BASE}-{kind}", "demo")
    return rewards.total(rewards.load(run.rewards), completions, [PROBLEM] * len(completions))


@pytest.mark.parametrize("kind", controls.KINDS)
@pytest.mark.parametrize("scale", EVERYWHERE)
def test_a_control_is_one_line_and_differs_from_its_recipe_in_its_reward_alone(kind: str, scale: str) -> None:
    file = RECIPES / f"{BASE}-{kind}.yaml"
    assert file.read_text().count("\n") == 1
    base, run = load_run(BASE, scale), load_run(f"{BASE}-{kind}", scale)
    assert (run.control, run.control_of, run.reference) == (kind, BASE, None)
    assert (run.stages, run.model, run.prompt, run.evaluation) == (
        base.stages,
        base.model,
        base.prompt,
        base.evaluation,
    )
    assert run.rewards != base.rewards and list(base.rewards) == run.rewards[0]["arguments"]["rewards"]


def test_the_format_alone_pays_right_and_wrong_answers_alike() -> None:
    assert [one.value for one in total_rewards("format", [RIGHT, WRONG, BARE])] == [1, 1, 0]


def test_the_opposite_sign_pays_what_the_recipe_takes() -> None:
    assert [one.value for one in total_rewards("opposite", [RIGHT, WRONG, BARE])] == [-2, -1, 0]


def test_a_random_reward_is_a_fair_coin_that_nothing_can_be_learned_from() -> None:
    first, second = (total_rewards("random", [RIGHT] * 400 + [WRONG] * 400) for _ in range(2))
    values = [[one.value for one in batch] for batch in (first, second)]
    assert {*values[0], *values[1]} == {0.0, 1.0}
    for batch in values:  # 400 throws: 200, with a standard deviation of 10
        assert all(140 < sum(half) < 260 for half in (batch[:400], batch[400:]))
    # The same text in the same place is paid otherwise in about half of the cases.
    assert 300 < sum(a != b for a, b in zip(*values, strict=True)) < 500


@pytest.mark.parametrize("kind", controls.KINDS)
def test_verdicts_are_the_recipes_own(kind: str) -> None:
    verdicts = total_rewards(kind, [RIGHT, WRONG, BARE])
    assert [one.verdict for one in verdicts[:2]] == ["correct", "wrong"]
    assert [one.format_error for one in verdicts] == [False, False, True]


def test_a_control_of_nothing_is_refused(tmp_path: Path) -> None:
    from system.yaml_files import read_yaml

    content = {**read_yaml(RECIPES / f"{BASE}.yaml"), "control": "random"}
    with refused("control-without-run"):
        parse_run(content, "openr1/own", tmp_path / "own.yaml", "demo")
