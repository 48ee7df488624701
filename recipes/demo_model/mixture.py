"""What a demo model is pre-trained on: traces of a task, a mixture of habits.

A habit is a way to solve the task. The right one is only one of them, and the asked format is kept only part of the
time; the shares are in the task's task.yaml. So the base model knows everything that a good answer needs and does it
rarely: that is where reinforcement learning starts from. The first part of the examples shows the right habit alone,
because the skill is then learned from far fewer of them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tasks import prompts, registry
from tasks.problems import Problem
from tasks.task import Traces


class Row(NamedTuple):
    """One example; the completion is what follows the rendered prompt."""

    prompt: prompts.Prompt
    question: str
    completion: str


def _strata(traces: Traces, problems: list[Problem]) -> list[list[Problem]]:
    """The problems in the groups that traces are drawn from equally often."""
    strata: dict[Any, list[Problem]] = defaultdict(list)
    for problem in problems:
        strata[traces.strata(problem)].append(problem)
    return list(strata.values())


def _generate_examples(
    traces: Traces, prompt_list: list[prompts.Prompt], habits: Any, strata: list[list[Problem]], rng: random.Random
) -> Iterator[Row]:
    while True:
        for prompt in prompt_list:
            rng.random()  # unused, kept so that the same seed gives the same models as in release 0.1
            problem = rng.choice(rng.choice(strata))
            yield Row(prompt, problem.question, traces.completion(problem, prompt, habits, rng))


def rows(task: str, demo: Mapping[str, Any], count: int, skills_first: float, seed: int) -> list[Row]:
    """Examples in the order in which they are learned, the prompts in turn.

    Args:
        task: its name.
        demo: `demo` of its task.yaml: prompts, problems, habits, and what differs in them while only skills are shown.
        count: how many.
        skills_first: the share of them, from the start, that shows skills only.
        seed: of the problems and of every choice.
    """
    rng, traces = random.Random(seed), registry.get(task).traces
    strata = _strata(traces, traces.problems(seed=seed, **demo["problems"]))
    prompt_list = [prompts.load(name) for name in demo["prompts"]]
    skills = round(count * skills_first)
    examples: list[Row] = []
    for part, changes in ((skills, demo["skill"]), (count - skills, {})):
        stream = _generate_examples(traces, prompt_list, traces.Habits(**demo["habits"] | changes), strata, rng)
        examples += [next(stream) for _ in range(part)]
    return examples
