"""The rewards of a run as the function that OpenRLHF loads from this file (`--reward.remote_url`).

OpenRLHF calls it for each completion by itself, from threads of its vLLM processes, and goes on without a reward where
it raises; so a failure is printed and ends the process, which ends the training.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

from recipes import rewards

VARIABLE = "CROSSZERO_OPENRLHF"  # environment variable with what this process needs to know, see `environment`
FAILURE = "CROSSZERO reward failed: "  # begins the line that tells of it
PRINTING_SECONDS = 5.0  # until Ray has passed the line on

loaded = cache(rewards.of_this_process)
writing = threading.Lock()


def environment(special_tokens: Sequence[str], rollouts: Path) -> dict[str, str]:
    """The environment of a training process, from which `reward_func` learns what ends a turn and where to write."""
    return {VARIABLE: json.dumps({"special_tokens": list(special_tokens), "rollouts": str(rollouts)})}


@cache
def settings() -> tuple[re.Pattern[str], IO[str]]:
    """What ends a turn, and the file that this process writes its rollouts to."""
    given = json.loads(os.environ[VARIABLE])
    folder = Path(given["rollouts"])
    folder.mkdir(parents=True, exist_ok=True)
    ends = re.compile("|".join(re.escape(token) for token in given["special_tokens"]) or r"\Z")
    return ends, (folder / f"{os.uname().nodename}-{os.getpid()}-{time.time_ns()}.jsonl").open("a", encoding="utf-8")


def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """The reward of one completion, and its share of accuracy and error rates for OpenRLHF's log."""
    try:
        return judge(queries[0], prompts[0], labels[0])
    except BaseException as error:
        traceback.print_exc()
        print(f"{FAILURE}{type(error).__name__}: {' '.join(str(error).split())}", flush=True)
        time.sleep(PRINTING_SECONDS)
        os._exit(1)


def judge(query: str, prompt: str, label: str) -> dict[str, Any]:
    """Reward, and record as a rollout, what follows the prompt up to the first special token.

    A reward of None (an unusable gold answer) counts as 0: OpenRLHF cannot leave a completion out.
    """
    if not query.startswith(prompt):
        raise ValueError(f"the completion's text does not begin with its prompt, {prompt[-80:]!r}")
    ends, file = settings()
    completion = ends.split(query[len(prompt) :], maxsplit=1)[0]
    problem = json.loads(label)
    known = rewards.problem(*(problem[name] for name in rewards.COLUMNS))
    given = rewards.total(loaded(), [problem["prefill"] + completion], [known])
    value, verdict, _ = given[0]
    row = {"time": time.time(), "problem_id": problem["problem_id"], "reward": value, "verdict": verdict}
    if problem["recorded"]:
        row |= {"prompt": prompt, "completion": completion}
    with writing:
        file.write(json.dumps(row) + "\n")
        file.flush()
    number = 0.0 if value is None else value
    return {"rewards": number, "scores": number, "extra_logs": rewards.rates(given)}
