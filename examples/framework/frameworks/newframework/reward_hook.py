"""The rewards of a run in newframework's own convention: the function that its trainer calls for completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frameworks import reward_hook


@reward_hook.failures_noted()
def reward(
    questions: Sequence[Mapping[str, Any]], prompts: Sequence[str], completions: Sequence[str], step: int
) -> list[float | None]:
    """One number per completion; make the arguments those that the framework passes, and `questions` from its columns.

    Args:
        questions: of each completion, as frameworks.training_prompts gives them.
        prompts: what the model saw.
        completions: what it added.
        step: of the stage, from 1.
    """
    return [judgement.value for judgement in reward_hook.judge(questions, prompts, completions, step)]
