"""The rewards of a run as the function that verl calls for each completion (`reward.custom_reward_function`)."""

from __future__ import annotations

import json
from typing import Any

from frameworks import reward_hook


@reward_hook.failures_noted()
def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any], **_: Any
) -> dict[str, Any]:
    """The reward of one completion.

    Args:
        data_source: unused.
        solution_str: the completion.
        ground_truth: the question with its rendered prompt, as JSON; see VerlAdapter.write_data.
        extra_info: verl's; `max_global_steps` is the step whose weights sampled the completion, one before its own.

    verl cannot leave a completion out: where all rewards are None, it counts 0.
    """
    question, weights_of = json.loads(ground_truth), extra_info.get("max_global_steps")
    step = None if weights_of is None else int(weights_of) + 1
    (judgement,) = reward_hook.judge([question], [question["prompt"]], [solution_str], step, without_reward=0.0)
    return {"score": judgement.value, "verdict": judgement.verdict}
