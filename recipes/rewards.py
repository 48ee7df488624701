"""Rewards: functions of a completion and its problem, the same whatever framework trains with them, and their sum.

A run file names each with a weight. A reward takes the completions of a batch (the assistant's whole turn as text,
with whatever the prompt already held of it in front) and their problems, and returns a Reward for each:

    def reward(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]

Keyword arguments are those that the run file states under `arguments`. One called `extraction` is given the rule that
looks where the run's prompt asks for the answer (grading.extraction), as the evaluation does; recipes/answer_check.py
refuses a run whose rewards look elsewhere. `recipes.rewards.correct` suits every task, and so do the length and
repetition terms of `recipes.reward_shaping` and the noise of `recipes.reward_noise`. Adapters hand their framework one
function, the weighted sum (`total`), in the framework's own convention.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from contracts.run_file import Run
from contracts.tables import VERDICTS
from grading import Grade, Item, grade
from grading.extraction import BOX, rule_of_prompt
from system.errors import UserError
from tasks import prompts, reasoning_steps, registry
from tasks.problems import Problem

VARIABLE = "CROSSZERO_REWARDS"  # environment variable with the rewards of a training process's run
EXTRACTION = "CROSSZERO_EXTRACTION"  # and with the rule of its prompt
COLUMNS = ("task", "answer", "meta")  # of the problem table: what a training process is given, besides the prompt


class Reward(NamedTuple):
    """What a completion earns."""

    value: float | None  # None leaves the completion out, where the problem's answer is unusable
    verdict: str | None = None  # one of VERDICTS, if this reward judges the answer
    format_error: bool = False  # the form that the prompt asks for is broken


RewardFunction = Callable[[Sequence[str], Sequence[Problem]], list[Reward]]
Weighted = list[tuple[RewardFunction, float]]


def problem_from_columns(task: str, answer: str, meta: str) -> Problem:
    """The problem as rewards see it, from its COLUMNS; `meta` is JSON."""
    return Problem("", task, "", answer, json.loads(meta or "{}"))


def check_argument(function: str, argument: str, value: object, fits: bool, allowed: str) -> None:
    """Raise UserError if the value that a run file gives a reward's argument is not one that is allowed."""
    if not fits:
        raise UserError(
            f"{function}: {argument} should be {allowed}, and is {value}; correct the run file",
            code="argument-out-of-range",
            function=function,
            argument=argument,
        )


def grades(completions: Sequence[str], problems: Sequence[Problem], extraction: str = BOX) -> list[Grade]:
    """Answers and verdicts by the evaluation's own grader, so that both mean the same by "correct".

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        extraction: where the answer stands (grading.extraction.RULES).
    """
    items = [
        Item(problem.task, problem.answer or "", completion, meta=problem.meta, extraction=extraction)
        for problem, completion in zip(problems, completions, strict=True)
    ]
    return list(grade(items, workers=1))


def verdicts(completions: Sequence[str], problems: Sequence[Problem], extraction: str = BOX) -> list[str]:
    """The verdict on each completion; see `grades`."""
    return [judged.verdict for judged in grades(completions, problems, extraction)]


def tagged_verdicts(answers: Sequence[str | None], problems: Sequence[Problem]) -> list[str]:
    """The verdicts on answers that a reward has taken from the answer tag itself.

    `format_error` for a missing or empty one, unless the gold answer is unusable: the grader is then given a text that
    stands for an answer, so that it still looks at the gold answer.
    """
    completions = [f"<answer>{answer or '0'}</answer>" for answer in answers]
    return [
        judged.verdict if answer or judged.verdict == "ungradable" else "format_error"
        for answer, judged in zip(answers, grades(completions, problems, "answer-tag"), strict=True)
    ]


def correctness(verdict: str, format_error: bool = False) -> Reward:
    """The reward of 1 for `correct`, 0 for any other verdict, and None for `ungradable`."""
    return Reward(None if verdict == "ungradable" else float(verdict == "correct"), verdict, format_error)


def correct(completions: Sequence[str], problems: Sequence[Problem], *, extraction: str = BOX) -> list[Reward]:
    """1 for a correct answer where the prompt asks for it, else 0; None where the problem has no usable answer.

    That is a gold answer that is missing, empty, or that the grader cannot read.
    """
    return [correctness(verdict) for verdict in verdicts(completions, problems, extraction)]


def right_steps(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """The share of the steps that a program can check (`Task.check_steps`) that are right; 0 without such a step."""
    rewards = []
    for completion, problem in zip(completions, problems, strict=True):
        checked = registry.get(problem.task).check_steps(completion, problem) or []
        known = [step for step in checked if step.verdict != reasoning_steps.NOT_CHECKABLE]
        rewards.append(
            Reward(sum(step.verdict == reasoning_steps.RIGHT for step in known) / len(known) if known else 0.0)
        )
    return rewards


def extraction_of(run: Run) -> str:
    """The rule by which a run's rewards find the answer: where its prompt asks for it."""
    return rule_of_prompt(prompts.load(run.prompt))


def load(rewards: Iterable[Mapping[str, Any]], extraction: str = BOX) -> Weighted:
    """The functions, with their arguments, and the weights of a run file's `rewards`.

    Args:
        rewards: of the run file.
        extraction: given to the functions that take it; see `extraction_of`.

    Raises:
        ImportError, AttributeError: a function does not exist.
        TypeError: it has no such argument, or needs one.
    """
    weighted_functions: Weighted = []
    for reward in rewards:
        weighted = _load_function(reward, extraction), float(reward["weight"])
        weighted_functions.append(
            (_rounded_to_multiple(*weighted, reward["multiple_of"]), 1.0) if "multiple_of" in reward else weighted
        )
    return weighted_functions


def _load_function(reward: Mapping[str, Any], extraction: str) -> RewardFunction:
    """The function of an entry with its arguments; its argument `reward` may name another one in the same way."""
    module, _, name = reward["function"].rpartition(".")
    function, arguments = getattr(importlib.import_module(module), name), dict(reward.get("arguments", {}))
    if isinstance(arguments.get("reward"), Mapping):
        arguments["reward"] = _load_function(arguments["reward"], extraction)
    if "extraction" in inspect.signature(function).parameters:
        arguments.setdefault("extraction", extraction)
    inspect.signature(function).bind((), (), **arguments)
    return functools.partial(function, **arguments)


def _rounded_to_multiple(function: RewardFunction, weight: float, step: float) -> RewardFunction:
    """The weighted reward as a multiple of a step."""

    def rounded(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
        return [
            unrounded
            if unrounded.value is None
            else unrounded._replace(value=round(weight * unrounded.value / step) * step)
            for unrounded in function(completions, problems)
        ]

    return rounded


def short_names(rewards: Sequence[Mapping[str, Any]]) -> list[str]:
    """A short name for each of a run file's rewards: its function's, numbered where it occurs again."""
    short = [reward["function"].rpartition(".")[2] for reward in rewards]
    counts = [short[: index + 1].count(name) for index, name in enumerate(short)]
    return [name if count == 1 else f"{name} {count}" for name, count in zip(short, counts, strict=True)]


def environment(rewards: Iterable[Mapping[str, Any]], extraction: str = BOX) -> dict[str, str]:
    """The environment of a training process, from which `from_environment` loads the same rewards."""
    return {VARIABLE: json.dumps(list(rewards)), EXTRACTION: extraction}


def from_environment() -> Weighted:
    """The rewards that `environment` put there."""
    return load(json.loads(os.environ[VARIABLE]), os.environ.get(EXTRACTION, BOX))


def each_reward(rewards: Weighted, completions: Sequence[str], problems: Sequence[Problem]) -> list[tuple[Reward, ...]]:
    """What each reward function gives for each completion.

    Args:
        rewards: functions and weights.
        completions: the assistant's turns.
        problems: of each completion.

    Returns:
        For each completion a Reward of each function, before it is weighed.

    Raises:
        ValueError: a function returned another number of rewards.
    """
    columns = []
    for function, _ in rewards:
        column = function(completions, problems)
        if len(column) != len(completions):
            raise ValueError(f"{function} gave {len(column)} rewards for {len(completions)} completions")
        columns.append(column)
    return list(zip(*columns, strict=True))


def weighted_sum(rewards: Weighted, parts: Sequence[Reward]) -> Reward:
    """The weighted sum of what the rewards give for one completion, with the first verdict among them.

    Args:
        rewards: functions and weights.
        parts: by each function.

    Returns:
        A value of None counts as nothing; where all are None, so is the sum.

    Raises:
        ValueError: a verdict is unknown.
    """
    values = [
        weight * reward.value for reward, (_, weight) in zip(parts, rewards, strict=True) if reward.value is not None
    ]
    verdict = next((reward.verdict for reward in parts if reward.verdict), None)
    if verdict not in (None, *VERDICTS):
        raise ValueError(f"'{verdict}' is no verdict; there are: {', '.join(VERDICTS)}")
    return Reward(sum(values) if values else None, verdict, any(reward.format_error for reward in parts))


def total(rewards: Weighted, completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """The weighted sum for each completion; see `each_reward` and `weighted_sum`."""
    return [weighted_sum(rewards, parts) for parts in each_reward(rewards, completions, problems)]
