r"""OpenR1's rewards. The format patterns and values are those of the report, section 2.3.1."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grading.extraction import last_boxed
from recipes.rewards import Reward, correct
from tasks.problems import Problem

TAGS = re.compile(r"^<think>.*?</think>\s*<answer>.*?</answer>$", re.DOTALL | re.MULTILINE)
# The same in two steps: as one pattern it takes quadratic time
BETWEEN = re.compile(r"</think>\s*+<answer>")
END = re.compile(r"</answer>$", re.MULTILINE)

accuracy = correct  # open-r1's too: 1 or 0 by math-verify, none where the gold answer cannot be read


def tags(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    """1 if the completion begins with `<think>…</think><answer>…</answer>` and a line ends there, else 0.

    As published, with MULTILINE: more lines may follow, and the tags may be repeated in what they hold.
    """
    kept = [_has_tags(text) for text in completions]
    return [Reward(float(ok), format_error=not ok) for ok in kept]


def _has_tags(text: str) -> bool:
    between = BETWEEN.search(text, len("<think>")) if text.startswith("<think>") else None
    return between is not None and END.search(text, between.end()) is not None


def boxed(completions: Sequence[str], problems: Sequence[Problem]) -> list[Reward]:
    r"""1 if the completion holds a complete `\boxed{}`, else 0."""
    kept = [last_boxed(text) is not None for text in completions]
    return [Reward(float(ok), format_error=not ok) for ok in kept]
