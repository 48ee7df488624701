"""What a demo model is pre-trained on: traces of one or several tasks, each a mixture of habits.

A habit is a way to solve the task. The right one is only one of them, and the asked format is kept only part of the
time; the shares are in demo_model.yaml. So the base model knows everything that a good answer needs and does it rarely:
that is where reinforcement learning starts from. The first part of the examples shows the right habit alone, because
the skill is then learned from far fewer of them.
"""

from __future__ import annotations

import importlib
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tasks import prompts
from tasks.problems import Problem

Tasks = Mapping[str, Mapping[str, Any]]  # `tasks` of demo_model.yaml


class Row(NamedTuple):
    """One example; the completion is what follows the rendered prompt."""

    prompt: prompts.Prompt
    question: str
    completion: str


def _traces(task: str) -> Any:
    return importlib.import_module(f"tasks.{task}.traces")


def phrases(tasks: Tasks) -> list[str]:
    """Texts that are to be one token each."""
    return [phrase for name, settings in tasks.items() for phrase in _traces(name).phrases(settings["problems"])]


def _pools(name: str, settings: Mapping[str, Any], seed: int) -> list[list[Problem]]:
    """The task's training problems in groups that traces are told of alike often."""
    pools: dict[Any, list[Problem]] = defaultdict(list)
    for problem in _traces(name).problems(seed=seed, **settings["problems"]):
        pools[_traces(name).strata(problem)].append(problem)
    return list(pools.values())


def _task(
    name: str, settings: Mapping[str, Any], habits: Any, pools: list[list[Problem]], rng: random.Random
) -> Iterator[Row]:
    asked = [prompts.load(prompt) for prompt in settings["prompts"]]
    while True:
        for prompt in asked:
            problem = rng.choice(rng.choice(pools))
            yield Row(prompt, problem.question, _traces(name).completion(problem, prompt, habits, rng))


def rows(tasks: Tasks, count: int, skills_first: float, seed: int) -> list[Row]:
    """`count` examples in the order in which they are learned, tasks by their steps and their prompts in turn.

    Args:
        tasks: steps, prompts, problems, habits, and what is other in them while only skills are shown.
        count: how many.
        skills_first: the share of them, from the start, that shows skills only.
        seed: of the problems and of every choice.
    """
    rng = random.Random(seed)
    pools = {name: _pools(name, settings, seed) for name, settings in tasks.items()}
    shares = [settings["steps"] for settings in tasks.values()]
    skills = round(count * skills_first)
    found: list[Row] = []
    for part, changed in ((skills, True), (count - skills, False)):
        streams = {}
        for name, settings in tasks.items():
            habits = settings["habits"] | (settings["skill"] if changed else {})
            streams[name] = _task(name, settings, _traces(name).Habits(**habits), pools[name], rng)
        found += [next(streams[rng.choices(list(streams), shares)[0]]) for _ in range(part)]
    return found
