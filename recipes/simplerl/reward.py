r"""SimpleRL's rewards: train/openrlhf/trainer/ppo_utils/experience_maker.py at 2702a87, with the evaluation's grader.

The published code judges with Qwen's `math_equal`. Its answer is what follows the last "boxed": in braces, which may
stay open, or without any up to a dollar sign. So is ours, within the model's own turn (grading.model_turn); without a
"boxed" the published code takes other answers, and a missing box then overrides what it found. `snakemake fidelity`
lists where the two differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from grading.model_turn import own_turn
from recipes.rewards import Reward, correctness, verdicts
from tasks.problems import Problem

RIGHT, WRONG, NO_BOX = 1.0, -0.5, -1.0
BOX = "boxed"  # the published code looks for this word anywhere in the completion


def right(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """SimpleRL-Zoo's: 1 for a right answer in the last box, else 0; None where the gold answer is unusable."""
    return [correctness(verdict) for verdict in _box_verdicts(completions, problems)]


def boxed_answer(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 for a right answer in the last box, -0.5 for any other completion with a box, -1 without one.

    The value is None where the gold answer is unusable. A box without an answer to judge, such as an empty one, counts
    as a box.
    """
    judged = zip(completions, _box_verdicts(completions, problems), strict=True)
    return [_reward(completion, verdict) for completion, verdict in judged]


def _box_verdicts(completions: Sequence[str], problems: Sequence[Problem]) -> list[str]:
    boxes = [f"\\boxed{{{_published_answer(text)}}}" if "\\boxed" in text else text for text in completions]
    return verdicts(boxes, problems)


def _published_answer(completion: str) -> str:
    """What the published code takes of a completion with a box: after the last "boxed", to its closing brace if any."""
    text = own_turn(completion).rpartition(BOX)[2]
    if not text.startswith("{"):
        return text.partition("$")[0].strip()
    depth = 0
    for brace in re.finditer(r"[{}]", text):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return text[1 : brace.start()]
    return text[1:]


def _reward(completion: str, verdict: str) -> Reward:
    if BOX not in own_turn(completion):
        return Reward(NO_BOX, verdict, format_error=True)
    if verdict == "ungradable":
        return Reward(None, verdict)
    return Reward(RIGHT if verdict == "correct" else WRONG, verdict)
