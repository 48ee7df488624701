"""Controls of a recipe: the same training with a reward that does not say which answers are right.

Such rewards have raised scores, too (Shao et al. 2025, "Spurious Rewards", arXiv:2506.10947), so what a recipe gains is
read beside what its controls gain. A run file of one line is a control of the run that it extends:

    {extends: qwen2.5-math-7b, control: random}

A control judges completions with the recipe's own rewards, so that its training log still has their accuracy and
format, and replaces the value.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contracts.run_file import Run
from grading.extraction import BOX
from recipes.rewards import Reward, load, total
from tasks.problems import Problem

KINDS = {"random": "random_reward", "format": "format_alone", "opposite": "opposite_sign"}  # and their functions here
TITLES = {"random": "random reward", "format": "format reward alone", "opposite": "reward of the opposite sign"}
MALFORMED = ("format_error", "no_answer")
_calls = itertools.count()


def apply_control(run: Run) -> Run:
    """A run as its file's `control` makes it; a run without one as it is."""
    if run.control is None:
        return run
    reward = {
        "function": f"{__name__}.{KINDS[run.control]}", "weight": 1.0, "arguments": {"rewards": list(run.rewards)},
    }  # fmt: skip
    return replace(run, title=f"{run.title}, control: {TITLES[run.control]}", reference=None, rewards=(reward,))


def _recipe_rewards(
    rewards: Sequence[Mapping[str, Any]], completions: Sequence[str], problems: Sequence[Problem], extraction: str
) -> list[Reward]:
    return total(load(rewards, extraction), completions, problems)


def random_reward(
    completions: Sequence[str],
    problems: Sequence[Problem],
    *,
    rewards: Sequence[Mapping[str, Any]],
    extraction: str = BOX,
) -> list[Reward]:
    """1 or 0, each with chance one half, whatever the completion.

    A hash of the call's number, the place and the text is the coin: a training repeats with its seed, and the same text
    is paid otherwise at another time, so that nothing can be learned from it.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        rewards: of the recipe, for verdicts and format.
        extraction: where the answer stands.
    """
    call = next(_calls)

    def coin(position: int, text: str) -> float:
        return float(hashlib.sha256(f"{call} {position} {text}".encode(errors="replace")).digest()[0] & 1)

    return [
        judged._replace(value=coin(position, text))
        for position, (text, judged) in enumerate(
            zip(completions, _recipe_rewards(rewards, completions, problems, extraction), strict=True)
        )
    ]


def format_alone(
    completions: Sequence[str],
    problems: Sequence[Problem],
    *,
    rewards: Sequence[Mapping[str, Any]],
    extraction: str = BOX,
) -> list[Reward]:
    """1 if the completion has the form that the recipe's rewards ask for, right or wrong, else 0.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        rewards: of the recipe; one of them finds a format error, or judges that there is no answer.
        extraction: where the answer stands.
    """
    return [
        judged._replace(value=float(not (judged.format_error or judged.verdict in MALFORMED)))
        for judged in _recipe_rewards(rewards, completions, problems, extraction)
    ]


def opposite_sign(
    completions: Sequence[str],
    problems: Sequence[Problem],
    *,
    rewards: Sequence[Mapping[str, Any]],
    extraction: str = BOX,
) -> list[Reward]:
    """The recipe's reward with its sign changed.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        rewards: of the recipe.
        extraction: where the answer stands.
    """
    return [
        judged if judged.value is None else judged._replace(value=-judged.value)
        for judged in _recipe_rewards(rewards, completions, problems, extraction)
    ]
