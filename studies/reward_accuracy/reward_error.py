"""The error of a reward on a policy's own completions: squared bias, variance, agreement with the truth, and cost.

Stored completions are judged again by the reward of a run file, several times where it draws, beside the exact reward.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.results import RunResults
from contracts.run_file import Run
from eval.run_settings import protocol_of
from recipes import reward_noise, rewards
from recipes.rewards import Reward, RewardFunction
from system.errors import UserError
from tasks import prompts
from tasks.problems import Problem

Floats = npt.NDArray[np.float64]
TIMES = 8  # that a reward which draws judges each completion
MEASURES = ("bias_squared", "variance", "mean_squared")
EXTREMES = ("recipes.reward_noise.random", "recipes.reward_noise.constant")  # they know nothing of the answer
COUNTS = ("count", "tests")  # arguments that say how many rollouts or tests a reward makes for a completion


class Completions(NamedTuple):
    """The completions of one checkpoint on one benchmark, those of a problem side by side: (problems, repeats)."""

    turns: list[str]
    problems: list[Problem]
    repeats: int


class Measured(NamedTuple):
    """The error of a reward on one checkpoint's completions.

    Attributes:
        by_problem: per measure and benchmark, the mean over a problem's completions, of shape (problems,).
        agreement: the correlation with the exact reward within a problem; NaN where that cannot be told.
    """

    by_problem: dict[str, list[Floats]]
    agreement: float


class Cost(NamedTuple):
    """How fast a reward judges: completions per second, and rollouts or tests per second where it states a number."""

    completions: float
    draws: float


def function_of(run: Run) -> RewardFunction:
    """The weighted sum of a run's rewards as one function."""
    weighted = rewards.load(run.rewards, rewards.extraction_of(run))
    return lambda completions, problems: rewards.total(weighted, completions, problems)


def is_extreme(run: Run) -> bool:
    """Whether the rewards know nothing of the answer: the random and the constant one."""
    return all(reward["function"] in EXTREMES for reward in run.rewards)


def label(run: Run) -> str:
    """The rewards of a run in words, such as `flipped, false positive 0.3` or `playouts, count 8`."""
    return "; ".join(map(_label, run.rewards))


def _label(reward: Mapping[str, Any]) -> str:
    arguments = {key: value for key, value in reward.get("arguments", {}).items() if key != "reward"}
    parts = [reward["function"].rpartition(".")[2], *(f"{key} {value}" for key, value in arguments.items())]
    return ", ".join(parts).replace("_", " ")


def completions_of(
    run: RunResults, step: int, benchmark: str, problems: Mapping[str, Problem], begun: str
) -> Completions:
    """The stored completions of one checkpoint on one benchmark.

    Args:
        run: the training.
        step: of the checkpoint.
        benchmark: the benchmark's name.
        problems: its problems by name.
        begun: what the prompt already holds of the assistant's turn.
    """
    rows = run.samples(step, benchmark).sort_values(["problem_id", "repeat"])
    turns = [begun + text for text in rows["completion"]]
    return Completions(
        turns, [problems[name] for name in rows["problem_id"]], len(rows) // rows["problem_id"].nunique()
    )


def beginning(run: Run) -> str:
    """What the prompt of a run's evaluation holds of the assistant's turn."""
    return prompts.load(protocol_of(run).prompt).assistant


def measure(reward: RewardFunction, exact: RewardFunction, parts: Sequence[Completions]) -> Measured:
    """The error of a reward on the completions of one checkpoint.

    Squared bias and variance are those of reward_noise.reward_error, which do not inflate each other: for the mean m
    and the variance s² of T judgements and the exact value e, (m - e)² - s²/T and s².

    Args:
        reward: what is measured; if it gives the same twice, it draws nothing, and has no variance.
        exact: the truth.
        parts: the completions on each benchmark.

    Raises:
        UserError: a completion has no reward.
    """
    parts_by_measure: dict[str, list[Floats]] = {name: [] for name in MEASURES}
    pieces = []
    for part in parts:
        judged = _judged(reward, exact, part)
        errors = np.array([one.error for one in judged]).reshape(-1, part.repeats, len(MEASURES)).mean(axis=1)
        for index, name in enumerate(MEASURES):
            parts_by_measure[name].append(errors[:, index])
        pieces.append(np.array(judged).reshape(-1, part.repeats, 4))
    return Measured(parts_by_measure, agreement(pieces))


def _judged(reward: RewardFunction, exact: RewardFunction, part: Completions) -> list[reward_noise.JudgedRepeatedly]:
    truth = exact(part.turns, part.problems)

    def known(*_: object) -> list[Reward]:
        return truth

    judgements = reward_noise.judge_repeatedly(reward, known, part.turns, part.problems, 2)
    if any(one and one.variance for one in judgements):
        judgements = reward_noise.judge_repeatedly(reward, known, part.turns, part.problems, TIMES)
    complete = [one for one in judgements if one]
    if len(complete) < len(judgements):
        raise UserError(
            f"every completion needs a reward and an exact value, and {len(judgements) - len(complete)} of "
            f"{len(judgements)} have none, because their problems are unusable; correct the benchmark",
            code="completions-without-reward",
        )
    return complete


def agreement(parts: Sequence[Floats]) -> float:
    """The correlation of one judgement with the exact value, over the completions of a problem, pooled over problems.

    A trainer that subtracts a group's mean (GRPO, Shao et al. 2024, arXiv:2402.03300, section 4.1.2) learns from these
    differences alone: what all completions of a problem have in common cancels. With c the covariance within problems
    of m and e, v the variance of e, and w that of m, it is c / √(v · (w + mean of s² · (1 - 1/T))): m has the variance
    s²/T of its T judgements, and one judgement s².

    Args:
        parts: per benchmark, exact value, mean, variance and number of judgements, of shape (problems, repeats, 4).

    Returns:
        From -1 to 1; 0 where the reward is the same for all completions of a problem, and NaN where the exact value is,
        or where each problem has one completion.
    """
    sums = np.zeros(3)
    for part in parts:
        exact, mean, variance, times = np.moveaxis(part, 2, 0)
        repeats = part.shape[1]
        if repeats < 2:
            return math.nan
        apart, shift = (value - value.mean(axis=1, keepdims=True) for value in (exact, mean))
        drawn = (variance * (1 - 1 / times)).sum() * (repeats - 1) / repeats
        sums += ((apart * shift).sum(), (apart**2).sum(), (shift**2).sum() + drawn)
    covariance, of_exact, of_reward = sums
    if not of_exact:
        return math.nan
    return float(covariance / math.sqrt(of_exact * of_reward)) if of_reward else 0.0


def cost(run: Run, reward: RewardFunction, parts: Sequence[Completions]) -> Cost:
    """How fast a reward judges completions that it has not seen yet, each once.

    Args:
        run: says how many rollouts or tests the reward makes.
        reward: of the run; what it remembers of earlier completions would be counted as fast.
        parts: completions; repeated ones are left out.

    Returns:
        Rates on this machine; `draws` counts completions with an answer alone, and is NaN without a stated number.
    """
    pairs = {
        (turn, id(problems)): problems
        for part in parts
        for turn, problems in zip(part.turns, part.problems, strict=True)
    }
    turns, problems = [turn for turn, _ in pairs], list(pairs.values())
    reward(turns[:1], problems[:1])  # what is loaded once is no part of the cost
    begun = time.perf_counter()
    values = reward(turns[1:], problems[1:])
    seconds = time.perf_counter() - begun
    answered = sum(one.verdict in ("correct", "wrong") for one in values)
    stated = [one.get("arguments", {}).get(name) for one in run.rewards for name in COUNTS]
    count = sum(number for number in stated if number)
    return Cost(len(values) / seconds, count * answered / seconds if count else math.nan)
