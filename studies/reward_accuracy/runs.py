"""What `snakemake study_reward_accuracy` trains and claims: reward_accuracy.yaml, read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from system.unknown_names import unknown
from system.yaml_files import read_yaml

FILE = Path(__file__).with_name("reward_accuracy.yaml")
FEWEST = 2  # trainings of each setting


class StudyTask(NamedTuple):
    """A task of the study: a sweep whose settings differ in the reward alone, the exact reward first."""

    name: str
    title: str
    sweep: str
    most_seeds: int

    def seeds(self, configured: Sequence[int]) -> list[int]:
        """The training seeds of this task: the first of the configured ones."""
        return list(configured[: self.most_seeds])


@cache
def tasks() -> list[StudyTask]:
    """The tasks, in their order."""
    return [StudyTask(one["name"], one["title"], one["sweep"], one["seeds"]) for one in read_yaml(FILE)["tasks"]]


def chosen(names: Sequence[str]) -> list[StudyTask]:
    """The tasks of these names, or all where none is named; raises UserError where one is unknown."""
    known = {task.name: task for task in tasks()}
    for name in names:
        if name not in known:
            raise unknown("task of the study", name, known)
    return [task for name, task in known.items() if not names or name in names]


@cache
def claims() -> list[dict[str, Any]]:
    """The claims that the trainings decide, with their rules; words and citations where the registry has none."""
    listed: list[dict[str, Any]] = read_yaml(FILE)["claims"]
    return listed
