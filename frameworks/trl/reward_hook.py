"""The rewards of a run as the one function that TRL's GRPOTrainer calls (`--reward_funcs`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from frameworks import recorded_rollouts, reward_hook
from frameworks.training_prompts import QUESTION
from frameworks.trl import fixed_rollouts, stop_in_time
from frameworks.trl.command import NATIVE_STEPS

stop_in_time.register()  # TRL's script imports this module before it makes the trainer
if recorded_rollouts.VARIABLE in os.environ:
    fixed_rollouts.install()


@reward_hook.failures_noted()
def reward(
    prompts: Sequence[str], completions: Sequence[str], trainer_state: Any, **columns: Any
) -> list[float | None]:
    """One number per completion; the columns of the training set come as lists, one item per completion.

    `global_step` counts the trainer's finished updates; the completions of a step are judged before its first.
    """
    questions = [
        dict(zip(QUESTION, row, strict=True)) for row in zip(*(columns[name] for name in QUESTION), strict=True)
    ]
    step = trainer_state.global_step // int(os.environ[NATIVE_STEPS]) + 1
    return [judgement.value for judgement in reward_hook.judge(questions, prompts, completions, step)]
