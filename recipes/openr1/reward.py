r"""OpenR1's rewards, as functions that TRL's GRPOTrainer loads.

Each takes the completions of a batch (conversational: a list of messages per completion) and the columns of the
training set, and returns one number per completion. The format patterns and values are those of the seed report,
section 2.3.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from eval.grading import Item, grade
from eval.grading.extraction import last_boxed

TAGS = re.compile(r"^<think>.*?</think>\s*<answer>.*?</answer>$", re.DOTALL | re.MULTILINE)

Completion = Sequence[dict[str, str]]


def _texts(completions: Sequence[Completion]) -> list[str]:
    return [completion[-1]["content"] for completion in completions]


def accuracy(
    completions: Sequence[Completion],
    answer: Sequence[str],
    task: Sequence[str],
    meta: Sequence[str],
    log_metric: Callable[[str, float], None] | None = None,
    **_: Any,
) -> list[float | None]:
    """1 for a right answer in the last box, else 0; None, which TRL leaves out, where the gold answer is unusable.

    Right or wrong is the evaluation's own judgement (math-verify in killable workers, an exact comparison before it),
    so that training and evaluation mean the same by "right". The share of completions that give a wrong answer, as
    opposed to none, goes into TRL's log as `wrong_answer`.
    """
    items = [
        Item(task=t, gold=gold, completion=text, finish_reason=None, meta=m, extraction="none")
        for t, gold, text, m in zip(task, answer, _texts(completions), meta, strict=True)
    ]
    verdicts = [result.verdict for result in grade(items, workers=1)]
    if log_metric is not None:
        log_metric("wrong_answer", sum(verdict == "wrong" for verdict in verdicts) / len(verdicts))
    return [None if verdict == "ungradable" else float(verdict == "correct") for verdict in verdicts]


def tags(completions: Sequence[Completion], **_: Any) -> list[float]:
    """1 if the whole completion is `<think>…</think><answer>…</answer>`, else 0."""
    return [float(TAGS.match(text) is not None) for text in _texts(completions)]


def boxed(completions: Sequence[Completion], **_: Any) -> list[float]:
    r"""1 if the completion holds a complete `\boxed{}`, else 0."""
    return [float(last_boxed(text) is not None) for text in _texts(completions)]
