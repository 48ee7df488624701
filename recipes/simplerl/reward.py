r"""SimpleRL's rewards: train/openrlhf/trainer/ppo_utils/experience_maker.py at 2702a87, with the evaluation's grader.

The published code judges with Qwen's `math_equal` and, without a box, takes the last number; then a missing box
overrides what it found. Ours looks for the answer in the box alone, which comes to the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from recipes.rewards import Reward, correct, verdicts
from tasks.problems import Problem

RIGHT, WRONG, NO_BOX = 1.0, -0.5, -1.0
BOX = "boxed"  # the published code looks for this word anywhere in the completion

right = correct  # SimpleRL-Zoo's: 1 or 0


def boxed_answer(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 for a right answer in the last box, -0.5 for any other completion with a box, -1 without one.

    The value is None where the gold answer is unusable. A box without an answer to judge (an empty or open one) counts
    as a box.
    """
    judged = zip(completions, verdicts(completions, problems), strict=True)
    return [_reward(completion, verdict) for completion, verdict in judged]


def _reward(completion: str, verdict: str) -> Reward:
    if BOX not in completion:
        return Reward(NO_BOX, verdict, format_error=True)
    if verdict == "ungradable":
        return Reward(None, verdict)
    return Reward(RIGHT if verdict == "correct" else WRONG, verdict)
