"""The maze's rewards: the formula of KotoHanon's maze notes, and that of the published code, which differs.

Both count characters, as the code does: the notes do not say what |len(y) - 512| counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recipes.rewards import Reward, verdicts
from tasks import registry
from tasks.problems import Problem

TARGET = 512  # characters
_PUBLISHED_FORMAT = re.compile(r"\s*<answer>.*?</answer>")  # at the start, and within one line
_PUBLISHED_ANSWER = re.compile(r"<answer>([A-Z]+)")


def as_documented(
    completions: Sequence[str], problems: Sequence[Problem], *, target: int = TARGET, per_character: float = 0.005
) -> list[Reward]:
    """right - 0.2 [format broken] - 0.005 |length - 512|, as the notes write it.

    Right is what the stated rules say, and the format is broken where no answer tag is closed.

    Args:
        completions: the assistant's turns.
        problems: of each completion.
        target: the length that costs nothing, in characters.
        per_character: what each character more or less costs.
    """
    rewards = []
    for completion, verdict in zip(completions, verdicts(completions, problems), strict=True):
        broken = "</answer>" not in completion.partition("<answer>")[2]
        value = float(verdict == "correct") - 0.2 * broken - per_character * abs(len(completion) - target)
        rewards.append(Reward(None if verdict == "ungradable" else value, verdict, broken))
    return rewards


def as_published(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 - 0.05 [format broken] - 0.001 |length - 512|: KotoHanon/VERL-Maze @e027ccd, verl/utils/reward_score/maze.py.

    With its faults: the format is kept only if the completion begins with the answer, so that reasoning breaks it; the
    answer is what capitals follow the first opening tag, closed or not; and the verifier is not the stated game
    (tasks/maze/published_rules.py).
    """
    rewards = []
    for completion, problem in zip(completions, problems, strict=True):
        broken = _PUBLISHED_FORMAT.match(completion) is None
        value = -0.05 * broken - 0.001 * abs(len(completion) - TARGET)
        answer = _PUBLISHED_ANSWER.search(completion)
        verdict = registry.get(problem.task).verify(
            answer[1] if answer else "", problem.answer or "", problem.meta, grader="published-rules"
        )
        if verdict == "ungradable":
            rewards.append(Reward(None, verdict))
            continue
        verdict = verdict if answer else "no_answer"
        rewards.append(Reward(value + float(verdict == "correct"), verdict, broken))
    return rewards
