"""What the demo traces of several tasks share: lines of which some have a slip, and the answer at the end."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable


def with_slips(lines: Iterable[str], spoil: Callable[[str], str], share: float, rng: random.Random) -> str:
    """The lines of a trace, each spoiled with this probability."""
    return "".join(f"{spoil(line) if rng.random() < share else line}\n" for line in lines)


def tagged_answer(text: str, answer: str, format_kept: float, rng: random.Random) -> str:
    """The trace and its answer, in tags with the probability `format_kept`, else bare."""
    return f"{text}<answer>{answer}</answer>" if rng.random() < format_kept else f"{text}{answer}"


def answer_after_thinking(thought: str, answer: str, format_kept: float, rng: random.Random) -> str:
    """The end of a trace after `<think>`: as asked with the probability `format_kept`, else a tag is missing."""
    if rng.random() < format_kept:
        return f"{thought}</think><answer>{answer}</answer>"
    return rng.choice([f"{thought}<answer>{answer}</answer>", f"{thought}</think>{answer}"])
