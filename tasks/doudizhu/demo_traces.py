"""Demo traces of dou dizhu endgames: a move, sometimes one that wins, sometimes one that is not legal."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.doudizhu.cards import possible_leads, write_cards
from tasks.doudizhu.problems import Position
from tasks.problems import Problem
from tasks.prompts import Prompt
from tasks.trace_parts import tagged_answer


@dataclass(frozen=True)
class Habits:
    """Shares from 0 to 1; the other moves are any legal ones."""

    winning: float
    illegal: float  # a combination of the hand, whatever is to be beaten
    format_kept: float


def strata(problem: Problem) -> bool:
    """Leads and answers are equally frequent in traces."""
    return bool(Position.from_meta(problem.meta).last)


def phrases(_: Mapping[str, Any]) -> list[str]:
    """See tasks.task.Traces."""
    return [" SJ", " BJ", "mine ", " theirs ", " beat ", " lead"]


def completion(problem: Problem, prompt: Prompt, habits: Habits, rng: random.Random) -> str:
    """What follows the prompt: the answer alone."""
    position, habit = Position.from_meta(problem.meta), rng.random()
    if habit < habits.winning:
        move = problem.answer or "pass"
    elif habit < habits.winning + habits.illegal:
        move = write_cards(rng.choice(sorted(possible_leads(position.mine))))
    else:
        move = write_cards(rng.choice(position.legal()))
    return tagged_answer("", move, habits.format_kept, rng)
