"""Dr. GRPO's reward for its R1 template: understand_r1_zero/math_grader.py, `answer_tag_reward_fn`, at dfca49d.

With its other templates the reward is `recipes.rewards.correct`: 1 for a right answer in a box, else 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from grading import Item, grade
from recipes.rewards import Reward
from tasks.problems import Problem

BETWEEN, OPENING, CLOSING = "</think> <answer>", "<answer>", "</answer>"
NOTHING = "0"  # in place of a missing answer, so that the grader still says whether the gold answer is usable


def answer_tag(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 for a right answer in the tag, else 0; None where the gold answer is unusable.

    The format is kept if the thinking ends and the answer begins with exactly one space between them, anywhere, and an
    answer is closed, anywhere. The answer is what follows the last opening tag, without closing tags.
    """
    kept = [BETWEEN in text and CLOSING in text for text in completions]
    answers = [
        text.rpartition(OPENING)[2].replace(CLOSING, "") if ok else ""
        for text, ok in zip(completions, kept, strict=True)
    ]
    items = [
        Item(p.task, p.answer or "", f"{OPENING}{answer or NOTHING}{CLOSING}", meta=p.meta, extraction="answer-tag")
        for p, answer in zip(problems, answers, strict=True)
    ]
    rewards = []
    for judged, ok in zip(grade(items, workers=1), kept, strict=True):
        verdict = judged.verdict if ok or judged.verdict == "ungradable" else "format_error"
        rewards.append(Reward(None if verdict == "ungradable" else float(verdict == "correct"), verdict, not ok))
    return rewards
