"""Noise dials: the rates that are asked for, the same draws everywhere, and a measured error that is the true one."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes import reward_noise, reward_randomness, rewards
from recipes.rewards import Reward
from system.errors import ROOT
from tasks.problems import Problem
from tests.budgets import examples
from tests.user_errors import refused

RIGHT, WRONG = r"\boxed{7}", r"\boxed{8}"
PROBLEMS = [rewards.problem_from_columns("arithmetic", "7", json.dumps({"number": number})) for number in range(400)]


def given_by(
    function: rewards.RewardFunction, completion: str = RIGHT, problems: Sequence[Problem] = PROBLEMS
) -> list[float]:
    return [one.value for one in function([completion] * len(problems), problems) if one.value is not None]


def right(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    return [Reward(float(text == RIGHT), "correct" if text == RIGHT else "wrong") for text in completions]


def always(value: float) -> rewards.RewardFunction:
    return lambda completions, problems: [Reward(value)] * len(completions)


def dial(name: str, **arguments: object) -> rewards.RewardFunction:
    """A wrapper around `right`, loaded as a run file's rewards are."""
    ((function, _),) = rewards.load(
        [{"function": f"recipes.reward_noise.{name}", "weight": 1.0, "arguments": {"reward": right, **arguments}}]
    )
    return function


@pytest.mark.parametrize("per", ["completion", "problem"])
def test_faults_come_at_their_rates_and_always_the_same(per: str) -> None:
    flipped = dial("flipped", false_positive=0.2, false_negative=0.4, per=per)
    for completion, share in ((RIGHT, 0.6), (WRONG, 0.2)):
        values = given_by(flipped, completion)
        assert set(values) == {0.0, 1.0} and abs(statistics.fmean(values) - share) < 6 * 0.5 / 20
        assert values == given_by(flipped, completion)
    assert given_by(flipped, WRONG) != given_by(dial("flipped", false_positive=0.2, per=per, seed=1), WRONG)


def test_a_problem_is_faulty_as_a_whole_or_each_completion_is() -> None:
    texts = [f"so {number} {WRONG}" for number in range(60)]
    for per, kinds in (("problem", {1}), ("completion", {2})):
        flipped = dial("flipped", false_positive=0.5, per=per)
        counts = [len({one.value for one in flipped(texts, [problem] * 60)}) for problem in PROBLEMS[:5]]
        assert set(counts) == kinds


def test_without_noise_a_dial_changes_nothing_and_verdicts_stay_true() -> None:
    for function in (dial("flipped"), dial("shifted", deviation=0.0), dial("gaussian", deviation=0.0)):
        assert function([RIGHT, WRONG], PROBLEMS[:2]) == right([RIGHT, WRONG], PROBLEMS[:2])
    inverted = dial("flipped", false_positive=1.0, false_negative=1.0)([RIGHT, WRONG], PROBLEMS[:2])
    assert inverted == [Reward(0.0, "correct"), Reward(1.0, "wrong")]
    spread = dial("flipped", false_negative=1.0, low=-1.0, high=2.0)([RIGHT, WRONG], PROBLEMS[:2])
    assert [one.value for one in spread] == [-1.0, -1.0]


def test_a_run_file_names_what_is_disturbed_and_wrappers_nest() -> None:
    inner = {"function": "recipes.rewards.correct"}
    middle = {"function": "recipes.reward_noise.flipped", "arguments": {"reward": inner, "false_negative": 1.0}}
    outer = {
        "function": "recipes.reward_noise.flipped",
        "weight": 2.0,
        "arguments": {"reward": middle, "false_positive": 1.0},
    }
    total = rewards.total(rewards.load([json.loads(json.dumps(outer))]), [RIGHT, WRONG], PROBLEMS[:2])
    assert total == [Reward(2.0, "correct"), Reward(2.0, "wrong")]
    assert rewards.short_names([outer]) == ["flipped"]


def test_unusable_problems_stay_without_a_reward() -> None:
    def none(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
        return [Reward(None, "ungradable")] * len(completions)

    assert reward_noise.flipped([RIGHT], PROBLEMS[:1], reward=none, false_positive=1.0) == none([RIGHT], PROBLEMS[:1])
    with refused("completions-without-reward"):
        reward_noise.reward_error(none, right, [RIGHT], PROBLEMS[:1])


def test_the_extremes_do_not_look_at_the_answer_but_their_verdicts_do() -> None:
    rewards_given = reward_noise.random([RIGHT, WRONG] * 200, PROBLEMS, rate=0.25)
    assert abs(statistics.fmean(one.value or 0.0 for one in rewards_given) - 0.25) < 6 * 0.5 / 20
    assert {one.verdict for one in rewards_given[::2]} == {"correct"} and {
        one.verdict for one in rewards_given[1::2]
    } == {"wrong"}
    assert {one.value for one in reward_noise.constant([RIGHT, WRONG], PROBLEMS[:2], value=0.3)} == {0.3}


# reward, its squared bias and its variance on completions of which half are right
ERRORS: list[tuple[Callable[[], rewards.RewardFunction], float, float]] = [
    (lambda: dial("flipped", false_positive=0.3, false_negative=0.1), 0.2, 0.0),
    (lambda: dial("shifted", deviation=0.5), 0.25, 0.0),
    (lambda: dial("gaussian", deviation=0.5), 0.0, 0.25),
    (lambda: dial("gaussian", reward=always(0.5), deviation=0.5), 0.25, 0.25),
    (lambda: dial("rollouts", reward=always(0.5), count=4), 0.25, 0.0625),
    (lambda: reward_noise.random, 0.25, 0.25),
    (lambda: reward_noise.constant, 0.5, 0.0),
    (lambda: right, 0.0, 0.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_the_measured_error_is_the_true_one(case: int) -> None:
    make, bias, variance = ERRORS[case]
    texts = [RIGHT, WRONG] * 200
    error = reward_noise.reward_error(make(), right, texts, PROBLEMS, times=8)
    assert error.bias_squared == pytest.approx(bias, abs=0.09)
    assert error.variance == pytest.approx(variance, abs=0.05)
    assert error.mean_squared == pytest.approx(error.bias_squared + error.variance, abs=1e-9)
    if not variance:
        assert error.variance == pytest.approx(0.0, abs=1e-12)


@examples("puzzles")
@given(st.lists(st.lists(st.floats(-2, 2), min_size=3, max_size=3), min_size=1, max_size=4))
def test_squared_bias_and_variance_add_up(values: list[list[float]]) -> None:
    judged = iter(range(3))

    def reward(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
        repeat = next(judged)
        return [Reward(one[repeat]) for one in values]

    error = reward_noise.reward_error(reward, always(0.25), [""] * len(values), PROBLEMS[: len(values)], times=3)
    mean = statistics.fmean((value - 0.25) ** 2 for one in values for value in one)
    assert error.mean_squared == pytest.approx(mean) == pytest.approx(error.bias_squared + error.variance)


def test_more_rollouts_have_less_variance() -> None:
    texts, problems = [RIGHT] * 200, PROBLEMS[:200]
    dials = [dial("rollouts", reward=always(0.5), count=count) for count in (1, 8, 64)]
    variances = [reward_noise.reward_error(noisy, always(0.5), texts, problems, 8).variance for noisy in dials]
    assert variances == pytest.approx([0.25, 0.25 / 8, 0.25 / 64], rel=0.25)


@pytest.mark.slow
def test_draws_are_the_same_in_another_process() -> None:
    script = (
        "from recipes import reward_randomness as draws; "
        "print(draws.fixed_generator(1, 'é', 2).random(), draws.fresh_generator('a').random())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert done.stdout.split() == [
        str(reward_randomness.fixed_generator(1, "é", 2).random()),
        str(reward_randomness.fixed_generator("a", 1).random()),
    ]
    assert (
        reward_randomness.fresh_generator("once", 1).random() != reward_randomness.fresh_generator("once", 1).random()
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("flipped", {"false_positive": 1.5}), ("flipped", {"false_negative": -0.1}), ("flipped", {"per": "batch"}),
        ("shifted", {"deviation": -1.0}), ("gaussian", {"deviation": -1.0}), ("rollouts", {"count": 0}),
    ],
)  # fmt: skip
def test_arguments_out_of_range_are_refused_before_anything_is_judged(name: str, arguments: dict[str, object]) -> None:
    with refused("argument-out-of-range", function=f"recipes.reward_noise.{name}", argument=next(iter(arguments))):
        dial(name, **arguments)((), ())


def test_what_cannot_be_loaded_or_measured_is_refused() -> None:
    for bad, error in (({"function": "recipes.reward_noise.no_such"}, AttributeError),
                       ({"function": "no.such"}, ImportError),
                       ({"function": "recipes.move_rewards.playouts"}, TypeError)):  # fmt: skip
        entry = {"function": "recipes.reward_noise.flipped", "weight": 1.0, "arguments": {"reward": bad}}
        with pytest.raises(error):
            rewards.load([entry])
    with refused("argument-out-of-range", argument="rate"):
        reward_noise.random((), (), rate=2.0)
    with refused("argument-out-of-range"):
        dial("rollouts", reward=always(1.5), count=2)([RIGHT], PROBLEMS[:1])
    with refused("argument-out-of-range", argument="times"):
        reward_noise.reward_error(right, right, [RIGHT], PROBLEMS[:1], times=1)
