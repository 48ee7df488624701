"""The reward of reasoning-gym 0.1.25 for syllogisms: its labels, of which some are wrong, and its partial credit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from recipes.rewards import Reward
from tasks import registry
from tasks.problems import Problem
from tasks.syllogisms import PUBLISHED

_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)  # as in the article: the first


def as_published(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 for the label, the label's share of an answer that has more, else 0: `score_answer` of its dataset.py.

    So "Yes or No" earns a third where the label is Yes, and two in nine where it is No.
    """
    return [_reward(completion, problem) for completion, problem in zip(completions, problems, strict=True)]


def _reward(completion: str, problem: Problem) -> Reward:
    match = _ANSWER.search(completion)
    answer, label = match[1].strip() if match else "", str(problem.meta.get("published_answer"))
    verdict = registry.get(problem.task).verify(answer, "", problem.meta, grader=PUBLISHED)
    if verdict == "ungradable":
        return Reward(None, verdict)
    return Reward(len(label) / len(answer) if label in answer else 0.0, verdict, format_error=match is None)
