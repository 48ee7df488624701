"""A reward that a model of random weights can raise, so that every step has a signal."""

from __future__ import annotations

from collections.abc import Sequence

from recipes.rewards import Reward
from tasks.problems import Problem


def digits(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """The share of digits among the characters of each completion."""
    shares = [sum(character.isdigit() for character in text) / max(len(text), 1) for text in completions]
    return [Reward(share, "wrong") for share in shares]
