"""Recorded completions, a line for each prompt of a step: written from one training, replayed in others.

studies/lockstep/fixed_rollout_training.py trains with them. What an ordinary training records of its rollouts is in
rollout_log.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from system import json_lines
from system.errors import UserError

VARIABLE = "CROSSZERO_RECORDED_ROLLOUTS"  # environment variable with the file to write, or to replay
RECORD = "CROSSZERO_ROLLOUTS_RECORD"  # set where it is to be written
RELEASED = "CROSSZERO_ROLLOUTS_RELEASE"  # what of a recording a training does not take, separated by spaces


@dataclass(frozen=True)
class Group:
    """A prompt and its completions in a step, as token ids."""

    step: int
    problem_id: str
    prompt: list[int]
    completions: list[list[int]]
    rewards: list[float]


def released_parts(environment: Mapping[str, str]) -> set[str]:
    """What a training does not take of its recording, by the names of its framework's plug-in."""
    return set(environment.get(RELEASED, "").split())


def read(recording: Path) -> list[Group]:
    """The groups of a recording in the order of their steps."""
    return [Group(**row) for row in json_lines.read(recording)]


@cache
def _groups_of_process() -> dict[tuple[int, ...], Group]:
    groups = read(Path(os.environ[VARIABLE]))
    by_prompt = {tuple(group.prompt): group for group in groups}
    if len(by_prompt) != len(groups):
        sentence = "a recording should have each prompt once, but has one twice; record fewer steps"
        raise UserError(sentence, code="duplicate-prompts", twice=len(groups) - len(by_prompt))
    return by_prompt


def completion(prompt: Sequence[int], sample: int) -> list[int]:
    """In a training process: the recorded completion of a prompt.

    Args:
        prompt: its token ids.
        sample: which of its completions, from 0.

    Raises:
        KeyError: the prompt is not in the recording.
    """
    return _groups_of_process()[tuple(map(int, prompt))].completions[sample]


def write_sampled(prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]]) -> None:
    """In a training process that records: append what a step sampled, as token ids."""
    row = {"prompts": [list(map(int, ids)) for ids in prompts], "completions": [list(map(int, c)) for c in completions]}
    with Path(os.environ[VARIABLE]).open("a", encoding="ascii") as file:
        file.write(json_lines.dump(row))
