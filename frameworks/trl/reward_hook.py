"""The rewards of a run as the one function that TRL's GRPOTrainer calls (`--reward_funcs`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from frameworks.trl import early_stop
from recipes import rewards

early_stop.register()  # TRL's script imports this module before it makes the trainer
loaded = cache(rewards.of_this_process)


def reward(
    completions: Sequence[str],
    task: Sequence[str],
    answer: Sequence[str],
    meta: Sequence[str],
    prefill: Sequence[str],
    problem_id: Sequence[str],
    log_metric: Callable[[str, float], None] | None = None,
    log_extra: Callable[[str, list[Any]], None] | None = None,
    **_: Any,
) -> list[float | None]:
    """One number per completion; accuracy and error rates go into TRL's log, verdicts into its tables."""
    turns = [begun + completion for begun, completion in zip(prefill, completions, strict=True)]
    given = rewards.total(loaded(), turns, [rewards.problem(*row) for row in zip(task, answer, meta, strict=True)])
    if log_metric is not None:
        for name, value in rewards.rates(given).items():
            log_metric(name, value)
    if log_extra is not None:  # columns of the tables of completions that TRL writes
        log_extra("problem_id", list(problem_id))
        log_extra("verdict", [one.verdict for one in given])
    return [one.value for one in given]
