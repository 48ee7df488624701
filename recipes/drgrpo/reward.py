"""Dr. GRPO's reward for its R1 template: understand_r1_zero/math_grader.py, `answer_tag_reward_fn`, at dfca49d.

With its other templates the reward is `recipes.rewards.correct`: 1 for a right answer in a box, else 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from recipes.rewards import Reward, correctness, tagged_verdicts
from tasks.problems import Problem

BETWEEN, OPENING, CLOSING = "</think> <answer>", "<answer>", "</answer>"
EMPTY = "0"  # what an empty answer is judged as


def answer_tag(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 for a right answer in the tag, else 0; None where the gold answer is unusable.

    The format is kept if the thinking ends and the answer begins with exactly one space between them, anywhere, and an
    answer is closed, anywhere. The answer is what follows the last opening tag, without closing tags.
    """
    kept = [BETWEEN in text and CLOSING in text for text in completions]
    answers = [
        text.rpartition(OPENING)[2].replace(CLOSING, "") or EMPTY if ok else None
        for text, ok in zip(completions, kept, strict=True)
    ]
    verdicts = tagged_verdicts(answers, problems)
    return [correctness(verdict, format_error=not ok) for verdict, ok in zip(verdicts, kept, strict=True)]
