r"""OpenR1's rewards. The format patterns and values are those of the seed report, section 2.3.1."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grading import Item, grade
from grading.extraction import last_boxed
from recipes.rewards import Problem, Reward

TAGS = re.compile(r"^<think>.*?</think>\s*<answer>.*?</answer>$", re.DOTALL | re.MULTILINE)


def accuracy(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 for a right answer in the last box, else 0; None where the gold answer is unusable.

    Right or wrong is the evaluation's own judgement (math-verify in killable workers, an exact comparison before it),
    so that training and evaluation mean the same by "right".
    """
    items = [
        Item(p.task, p.answer, completion, finish_reason=None, meta=p.meta, extraction="none")
        for p, completion in zip(problems, completions, strict=True)
    ]
    verdicts = [result.verdict for result in grade(items, workers=1)]
    return [Reward(None if v == "ungradable" else float(v == "correct"), v) for v in verdicts]


def tags(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 if the whole completion is `<think>…</think><answer>…</answer>`, else 0."""
    kept = [TAGS.match(text) is not None for text in completions]
    return [Reward(float(ok), format_error=not ok) for ok in kept]


def boxed(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    r"""1 if the completion holds a complete `\boxed{}`, else 0."""
    kept = [last_boxed(text) is not None for text in completions]
    return [Reward(float(ok), format_error=not ok) for ok in kept]
