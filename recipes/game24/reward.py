"""Two of the three parts of the reward for 24 points (Liao's report, section 1.3); the third is `right_steps`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from recipes.rewards import Reward, verdicts
from tasks import reasoning_steps
from tasks.problems import Problem

WRONG_ANSWER = 0.35  # in place of 0, so that the model states an answer at all
FREE_LINES, MIDDLE, STEEPNESS = 4, 20, 0.2  # t, m and k of equation 5


def outcome(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 for a right answer, 0.35 for a wrong one, 0 for none; None where the problem is unusable."""
    values = {"correct": 1.0, "wrong": WRONG_ANSWER, "ungradable": None}
    return [Reward(values.get(verdict, 0.0), verdict) for verdict in verdicts(completions, problems)]


def length(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 up to four lines of reasoning, then 1 / (1 + exp(0.2 (lines - 4 - 20))): equation 5."""
    return [
        Reward(length_value(sum(1 for _ in reasoning_steps.numbered_lines(completion)))) for completion in completions
    ]


def length_value(count: int) -> float:
    """The length reward of so many lines."""
    if count <= FREE_LINES:
        return 1.0
    return 1 / (1 + math.exp(min(STEEPNESS * (count - FREE_LINES - MIDDLE), 700)))
