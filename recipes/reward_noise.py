"""Rewards with added error: bias or variance around any reward, from a run file; and how large an error is.

    - function: recipes.reward_noise.flipped
      weight: 1.0
      arguments: {reward: {function: recipes.rewards.correct}, false_positive: 0.1, false_negative: 0.1, per: problem}

`reward` is the reward that is disturbed, with `arguments` of its own if it has any; it may be one of these. The
verdict stays its own, so that the training's accuracy is the true one. All draws are seeded by what is judged
(recipes.reward_randomness): bias is the same at each time and on every machine, and variance is drawn anew each time
that a completion is judged.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from grading.extraction import BOX
from recipes import reward_randomness
from recipes.rewards import Reward, RewardFunction, check_argument, verdicts
from system.errors import UserError
from tasks.problems import Problem


def flipped(
    completions: Sequence[str],
    problems: Sequence[Problem],
    *,
    reward: RewardFunction,
    false_positive: float = 0.0,
    false_negative: float = 0.0,
    per: str = "completion",
    low: float = 0.0,
    high: float = 1.0,
    seed: int = 0,
) -> list[Reward]:
    """A reward of two values with bias: some `low` ones become `high`, and some `high` ones `low`.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        reward: the reward; above the middle of `low` and `high` it counts as high.
        false_positive: the share of low rewards that become high, 0 to 1.
        false_negative: the share of high rewards that become low, 0 to 1.
        per: `completion`, a draw for each text of a problem; `problem`, one for all completions of a problem, so that
            with a test suite in mind the suite of a problem is faulty or not.
        low: the reward for a wrong answer.
        high: the reward for a right answer.
        seed: of the faults.

    Raises:
        UserError: an argument is out of range.
    """
    for name, rate in (("false_positive", false_positive), ("false_negative", false_negative)):
        check_argument("recipes.reward_noise.flipped", name, rate, 0 <= rate <= 1, "0 to 1")
    check_argument(
        "recipes.reward_noise.flipped", "per", per, per in ("completion", "problem"), "completion or problem"
    )

    def disturbed(value: float, problem: Problem, completion: str) -> float:
        chance = reward_randomness.fixed_generator(
            seed, reward_randomness.problem_key(problem), completion if per == "completion" else ""
        ).random()
        if value > (low + high) / 2:
            return low if chance < false_negative else high
        return high if chance < false_positive else low

    return _replace_values(reward, completions, problems, disturbed)


def _plus_normal(generator: Callable[[str, str], Random], deviation: float) -> Callable[[float, Problem, str], float]:
    """A change of rewards: a normal value of mean 0 is added, from the numbers drawn for a problem and completion."""
    return lambda value, problem, text: (
        value + generator(reward_randomness.problem_key(problem), text).gauss(0.0, deviation)
    )


def shifted(
    completions: Sequence[str], problems: Sequence[Problem], *, reward: RewardFunction, deviation: float, seed: int = 0
) -> list[Reward]:
    """A reward with bias: a normal value is added, always the same for the same completion.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        reward: the reward.
        deviation: the standard deviation of the added value over completions, 0 or more.
        seed: of the values.

    Raises:
        UserError: `deviation` is negative.
    """
    check_argument("recipes.reward_noise.shifted", "deviation", deviation, deviation >= 0, "0 or more")
    return _replace_values(
        reward, completions, problems, _plus_normal(partial(reward_randomness.fixed_generator, seed), deviation)
    )


def gaussian(
    completions: Sequence[str], problems: Sequence[Problem], *, reward: RewardFunction, deviation: float, seed: int = 0
) -> list[Reward]:
    """A reward with variance: a normal value of mean 0 is added, another each time.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        reward: the reward.
        deviation: the standard deviation of the added value, 0 or more.
        seed: of the values.

    Raises:
        UserError: `deviation` is negative.
    """
    check_argument("recipes.reward_noise.gaussian", "deviation", deviation, deviation >= 0, "0 or more")
    return _replace_values(
        reward, completions, problems, _plus_normal(partial(reward_randomness.fresh_generator, seed), deviation)
    )


def rollouts(
    completions: Sequence[str], problems: Sequence[Problem], *, reward: RewardFunction, count: int, seed: int = 0
) -> list[Reward]:
    """A reward with the variance of `count` rollouts: the share of them that succeed, each with the reward's chance.

    A reward of 0 or 1 has no such variance; one between them, such as a win rate, is estimated.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        reward: a reward from 0 to 1.
        count: of rollouts, 1 or more.
        seed: of the rollouts.

    Raises:
        UserError: `count` is below 1, or the reward is not from 0 to 1.
    """
    check_argument("recipes.reward_noise.rollouts", "count", count, count >= 1, "1 or more")

    def disturbed(value: float, problem: Problem, completion: str) -> float:
        check_argument("recipes.reward_noise.rollouts", "the reward", value, 0 <= value <= 1, "0 to 1")
        rng = reward_randomness.fresh_generator(seed, reward_randomness.problem_key(problem), completion)
        return sum(rng.random() < value for _ in range(count)) / count

    return _replace_values(reward, completions, problems, disturbed)


def random(
    completions: Sequence[str], problems: Sequence[Problem], *, rate: float = 0.5, seed: int = 0, extraction: str = BOX
) -> list[Reward]:
    """1 at a rate and else 0, whatever the answer is: another draw each time.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        rate: of ones, 0 to 1.
        seed: of the draws.
        extraction: where the answer stands, for the verdict.

    Raises:
        UserError: `rate` is out of range.
    """
    check_argument("recipes.reward_noise.random", "rate", rate, 0 <= rate <= 1, "0 to 1")
    return _replace_values(
        partial(_verdicts_alone, extraction=extraction),
        completions,
        problems,
        lambda _, problem, text: float(
            reward_randomness.fresh_generator(seed, reward_randomness.problem_key(problem), text).random() < rate
        ),
    )


def constant(
    completions: Sequence[str], problems: Sequence[Problem], *, value: float = 0.0, extraction: str = BOX
) -> list[Reward]:
    """The same for every completion: nothing can be learned from it."""
    return _replace_values(partial(_verdicts_alone, extraction=extraction), completions, problems, lambda *_: value)


class RewardError(NamedTuple):
    """A reward's mean error over completions: `mean_squared` is the sum of the others, up to rounding."""

    bias_squared: float
    variance: float
    mean_squared: float


class JudgedRepeatedly(NamedTuple):
    """A completion that was judged several times: the exact value, and mean and variance of the rewards given."""

    exact: float
    mean: float
    variance: float  # over times - 1
    times: int

    @property
    def error(self) -> RewardError:
        """Its squared bias, variance and squared error, none of them biased itself; see `reward_error`."""
        square = (self.mean - self.exact) ** 2
        share = self.variance / self.times
        return RewardError(square - share, self.variance, square + self.variance - share)


def judge_repeatedly(
    reward: RewardFunction, exact: RewardFunction, completions: Sequence[str], problems: Sequence[Problem], times: int
) -> list[JudgedRepeatedly | None]:
    """Judge each completion several times; None where either reward gives no value.

    The arguments are those of `reward_error`.

    Raises:
        UserError: `times` is below 2.
    """
    check_argument("recipes.reward_noise.judge_repeatedly", "times", times, times >= 2, "2 or more")
    truth = [one.value for one in exact(completions, problems)]
    columns = [[one.value for one in reward(completions, problems)] for _ in range(times)]
    judgements: list[JudgedRepeatedly | None] = []
    for true, *values in zip(truth, *columns, strict=True):
        rewards_given = [value for value in values if value is not None]
        usable = true is not None and len(rewards_given) == times
        judgements.append(
            JudgedRepeatedly(true, statistics.fmean(rewards_given), statistics.variance(rewards_given), times)
            if usable
            else None
        )
    return judgements


def reward_error(
    reward: RewardFunction,
    exact: RewardFunction,
    completions: Sequence[str],
    problems: Sequence[Problem],
    times: int = 16,
) -> RewardError:
    """The error of a reward against the exact one, on given completions: the mean of `Judged.error`.

    Each completion is judged `times` times. For the mean m, the variance s² (over times - 1) and the exact value e, its
    squared bias is (m - e)² - s² / times and its squared error (m - e)² + s² (times - 1) / times, each without bias
    itself; so the squared bias can come out slightly below 0.

    Args:
        reward: what is measured.
        exact: the truth.
        completions: the assistant's turns, such as a policy's own.
        problems: of each completion.
        times: that each is judged, 2 or more; a reward that draws nothing needs no more.

    Raises:
        UserError: `times` is below 2, or no completion has both rewards.
    """
    errors = [one.error for one in judge_repeatedly(reward, exact, completions, problems, times) if one]
    if not errors:
        raise UserError(
            "recipes.reward_noise.reward_error needs completions whose problems have an answer, and found none",
            code="completions-without-reward",
        )
    return RewardError(*(statistics.fmean(column) for column in zip(*errors, strict=True)))


def _verdicts_alone(completions: Sequence[str], problems: Sequence[Problem], *, extraction: str) -> list[Reward]:
    """The verdicts, with a reward of 0; None where the problem is unusable."""
    judged = verdicts(completions, problems, extraction)
    return [Reward(None if verdict == "ungradable" else 0.0, verdict) for verdict in judged]


def _replace_values(
    reward: RewardFunction,
    completions: Sequence[str],
    problems: Sequence[Problem],
    disturbed: Callable[[float, Problem, str], float],
) -> list[Reward]:
    """The reward with every value replaced.

    Args:
        reward: the reward.
        completions: the assistant's turns.
        problems: of each completion.
        disturbed: the new value, of the old one, the problem and the completion.
    """
    return [
        one if one.value is None else one._replace(value=disturbed(one.value, problem, text))
        for one, problem, text in zip(reward(completions, problems), problems, completions, strict=True)
    ]
