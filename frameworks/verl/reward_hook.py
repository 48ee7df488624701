"""The rewards of a run as the function that verl calls for each completion (`reward.custom_reward_function`)."""

from __future__ import annotations

import json
import threading
from functools import cache
from typing import Any

from recipes import rewards

loaded = cache(rewards.of_this_process)
FAILED = "a reward function failed: "  # the adapter looks for it: verl itself drops the completion and goes on
one_at_a_time = threading.Lock()  # verl calls from threads, and rewards need not be made for that


def compute_score(data_source: str, solution_str: str, ground_truth: str, **_: Any) -> dict[str, Any]:
    """The reward of one completion; `ground_truth` is the row of the problem as JSON, see verl.write_data.

    verl cannot leave a completion out: where all rewards are None, it counts 0, for the whole group alike.
    """
    try:
        problem = json.loads(ground_truth)
        asked = rewards.problem(*(problem[column] for column in rewards.COLUMNS))
        with one_at_a_time:
            (given,) = rewards.total(loaded(), [problem["prefill"] + solution_str], [asked])
    except Exception as error:
        print(f"{FAILED}{type(error).__name__}: {error}", flush=True)
        raise
    return {"score": 0.0 if given.value is None else given.value, "verdict": given.verdict}
