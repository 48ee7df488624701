"""The rewards of a run as the function that OpenRLHF loads from this file (`--reward.remote_url`).

OpenRLHF calls it for each completion by itself, from threads of its vLLM processes, and continues without a reward
where it raises; so a failure ends the process, which ends the training.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

from frameworks import reward_hook, rollout_log

VARIABLE = "CROSSZERO_SPECIAL_TOKENS"  # environment variable with the tokens that end a turn, as a JSON list
PRINTING_SECONDS = 5.0  # until Ray has passed on what was printed, if the machine is not busy


def environment(special_tokens: Sequence[str]) -> dict[str, str]:
    """The environment of a training process, from which `reward_func` knows what ends a turn."""
    return {VARIABLE: json.dumps(list(special_tokens))}


@cache
def end_of_turn() -> re.Pattern[str]:
    """Matches any special token."""
    return re.compile("|".join(re.escape(token) for token in json.loads(os.environ[VARIABLE])) or r"\Z")


def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """The reward of one completion, as OpenRLHF wants it."""
    try:
        return judge(queries[0], prompts[0], labels[0])
    except BaseException:
        time.sleep(PRINTING_SECONDS)
        os._exit(1)


@reward_hook.failures_noted()
def judge(query: str, prompt: str, label: str) -> dict[str, Any]:
    """Judge what follows the prompt up to the first special token.

    Args:
        query: prompt and completion as text, with special tokens.
        prompt: as the model saw it.
        label: the question as JSON; see OpenRLHFAdapter.write_data.

    A reward of None (an unusable gold answer) counts as 0: OpenRLHF cannot leave a completion out. It does not say
    which step it samples for. With dynamic sampling it drops a group whose scores have a mean of 0 or 1.
    """
    if not query.startswith(prompt):
        raise ValueError(f"the completion's text does not begin with its prompt, {prompt[-80:]!r}")
    completion = end_of_turn().split(query[len(prompt) :], maxsplit=1)[0]
    (judgement,) = reward_hook.judge([json.loads(label)], [prompt], [completion], step=None, without_reward=0.0)
    score = rollout_log.score(judgement.value, judgement.verdict)
    return {"rewards": judgement.value, "scores": score, "extra_logs": {}}
