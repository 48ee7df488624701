"""What the reward hooks of all frameworks share: judge completions with the run's rewards, and record each.

A hook is the function in the framework's own convention that its trainer calls; it lies in the framework's folder.
"""

from __future__ import annotations

import json
import os
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from frameworks import rollout_log
from recipes import rewards
from system import durable

BARE = "CROSSZERO_BARE"  # environment variable of bare_training.py: only what the recipe pays is computed
FAILURE = "failed-reward.json"  # in the attempt's folder; trainer_process.py ends the training when it is there
load_rewards = cache(rewards.from_environment)
one_at_a_time = threading.Lock()  # trainers call from threads, and reward functions need not be made for that


@contextmanager
def failures_noted() -> Iterator[None]:
    """Write what is raised inside where the launcher looks: some trainers drop the completion and continue.

    It is printed, too, but the lines of a process that ends may be lost on their way through Ray.
    """
    try:
        yield
    except BaseException as error:
        traceback.print_exc()
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        noted = json.dumps({"reason": reason, "trace": traceback.format_exc()}, ensure_ascii=False)
        with suppress(OSError, KeyError):  # a full disk, of which the trainer's output tells; no launcher
            durable.write_text(Path(os.environ[rollout_log.VARIABLE], FAILURE), noted, errors="replace")
        raise


def noted_failure(environment: Mapping[str, str]) -> dict[str, str] | None:
    """The `reason` and the `trace` of the failure of a reward function in a training with this environment."""
    file = Path(environment.get(rollout_log.VARIABLE, os.devnull), FAILURE)
    return json.loads(file.read_bytes()) if file.is_file() else None


def judge(
    questions: Sequence[Mapping[str, Any]],
    prompts: Sequence[str],
    completions: Sequence[str],
    step: int | None,
    without_reward: float | None = None,
) -> list[rewards.Reward]:
    """The reward of each completion; each is recorded as a rollout, but in a bare training.

    Args:
        questions: of each completion, as frameworks.training_prompts gives them; `copy` is a problem's number in a
            training set that may have it several times.
        prompts: what the model saw.
        completions: what it added.
        step: of the stage, from 1; None where the trainer does not say.
        without_reward: the value where no reward function gave one, for trainers that cannot leave a completion out.

    Raises:
        Exception: whatever a reward function raises.
    """
    turns = [question["prefill"] + completion for question, completion in zip(questions, completions, strict=True)]
    problems = [rewards.problem_from_columns(*(question[name] for name in rewards.COLUMNS)) for question in questions]
    with one_at_a_time:
        parts = rewards.each_reward(load_rewards(), turns, problems)
        sums = [rewards.weighted_sum(load_rewards(), each) for each in parts]
        judged = [one if one.value is not None else one._replace(value=without_reward) for one in sums]
        if BARE in os.environ:
            return judged
        rollout_log.process_recorder().write(
            {
                "step": step,
                "problem_id": question["problem_id"],
                "copy": question.get("copy"),
                "prompt": prompt,
                "completion": completion,
                "reward": None if one.value is None else float(one.value),  # NumPy's numbers are not JSON
                "verdict": one.verdict,
                "format_error": one.format_error,
                "parts": [None if part.value is None else float(part.value) for part in each],
            }
            for question, prompt, completion, one, each in zip(
                questions, prompts, completions, judged, parts, strict=True
            )
        )
    return judged
