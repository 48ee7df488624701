"""Rewards for a move in a game, from 0 to 1: what it is worth exactly, the win rate of random playouts, or
what an engine makes of it.

For every task whose answers are moves (tasks.task.Game). A completion without a legal move earns `illegal`.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recipes import reward_randomness
from recipes.rewards import Reward, check_argument, grades
from system.errors import UserError
from tasks import registry
from tasks.problems import Problem
from tasks.task import Game

Worth = Callable[[Game, Any, Mapping[str, Any], random.Random], float | None]


def legal(completions: Sequence[str], problems: Sequence[Problem], *, illegal: float = 0.0) -> list[Reward]:
    """1 for any legal move."""
    return _reward_moves(completions, problems, illegal, 0, lambda game, move, meta, rng: 1.0)


def exact(completions: Sequence[str], problems: Sequence[Problem], *, illegal: float = 0.0) -> list[Reward]:
    """1 for a move that wins with perfect play, 0.5 for one that draws, 0 for one that loses.

    Args:
        completions: the assistant's turns.
        problems: of each completion; all of them solved.
        illegal: the reward without a legal move.

    Raises:
        UserError: a position is not solved.
    """
    return _reward_moves(completions, problems, illegal, 0, _exact_value)


def playouts(
    completions: Sequence[str], problems: Sequence[Problem], *, count: int, illegal: float = 0.0, seed: int = 0
) -> list[Reward]:
    """The share of random playouts after the move that its player wins; a draw counts half.

    Every completion has playouts of its own, also one that was judged before.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        count: of playouts for each completion, 1 or more.
        illegal: the reward without a legal move.
        seed: of the playouts.

    Raises:
        UserError: `count` is below 1.
    """
    check_argument("recipes.move_rewards.playouts", "count", count, count >= 1, "1 or more")
    return _reward_moves(
        completions, problems, illegal, seed, lambda game, move, meta, rng: game.win_rate(move, meta, count, rng)
    )


def engine(
    completions: Sequence[str], problems: Sequence[Problem], *, nodes: int, illegal: float = 0.0
) -> list[Reward]:
    """What the task's engine makes of the move when it may look at so many positions.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        nodes: positions that the engine may look at for each completion, 1 or more.
        illegal: the reward without a legal move.

    Raises:
        UserError: the task has no engine, or `nodes` is below 1.
    """
    check_argument("recipes.move_rewards.engine", "nodes", nodes, nodes >= 1, "1 or more")
    return _reward_moves(completions, problems, illegal, 0, functools.partial(_engine_value, nodes))


def _engine_value(nodes: int, game: Game, move: Any, meta: Mapping[str, Any], rng: random.Random) -> float:
    if not hasattr(game, "engine"):
        raise UserError(
            "recipes.move_rewards.engine: the task has no engine: use recipes.move_rewards.exact or "
            "recipes.move_rewards.playouts",
            code="task-without-engine",
        )
    value: float = game.engine(move, meta, nodes)
    return value


def _exact_value(game: Game, move: Any, meta: Mapping[str, Any], rng: random.Random) -> float:
    value = game.value(move, meta)
    if value is None:
        raise UserError(
            "recipes.move_rewards.exact: a position is not solved: train on solved ones, or use "
            "recipes.move_rewards.playouts",
            code="unsolved-position",
        )
    return value


def _reward_moves(
    completions: Sequence[str], problems: Sequence[Problem], illegal: float, seed: int, worth: Worth
) -> list[Reward]:
    """What each completion's move is worth.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        illegal: the reward without a legal move.
        seed: of the draws that `worth` may make.
        worth: of a legal move.
    """
    rewards = []
    for problem, text, judged in zip(problems, completions, grades(completions, problems), strict=True):
        if judged.verdict == "ungradable":
            rewards.append(Reward(None, judged.verdict))
            continue
        game = registry.get(problem.task).game
        move = None if judged.answer is None else game.read_move(judged.answer, problem.meta)
        if move is None:
            rewards.append(Reward(illegal, judged.verdict, judged.answer is None))
            continue
        value = worth(
            game,
            move,
            problem.meta,
            reward_randomness.fresh_generator(seed, reward_randomness.problem_key(problem), text),
        )
        rewards.append(Reward(value, judged.verdict))
    return rewards
