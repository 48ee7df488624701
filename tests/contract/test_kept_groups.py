"""Which groups the releases drop under dynamic sampling, and that a run's top k reaches OpenRLHF's sampler."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from contracts.run_file import ROOT
from frameworks.openrlhf.command import SAMPLING, agent_sampling
from recipes.runs import load_run
from tests import needs
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]

GROUPS = {
    "all-right": {"scores": [1.0, 1.0], "rewards": [1.0, 1.0]},
    "all-wrong": {"scores": [0.0, 0.0], "rewards": [0.0, 0.0]},
    "one-right": {"scores": [1.0, 0.0], "rewards": [1.0, 0.0]},
    "all-half-right": {"scores": [0.5, 0.5], "rewards": [0.5, 0.5]},
    "all-right-one-long": {"scores": [1.0, 1.0], "rewards": [1.0, 0.4]},  # a penalty on its length
}


def answer_of(framework: str) -> dict[str, Any]:
    needs.skip_without(framework)
    stage = load_run("simplerl/qwen2.5-math-7b-grpo", "full").stages[0]
    stage = dataclasses.replace(stage, objective={}, rollout={**stage.rollout, "top_k": 50})
    environment = {SAMPLING[name][0]: str(value) for name, value in agent_sampling(stage).items()}
    done = subprocess.run(
        [warm_python(framework), Path(__file__).with_name("kept_groups.py"), framework],
        input=json.dumps({"groups": GROUPS, "environment": environment}), capture_output=True, text=True, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_verl_drops_groups_of_equal_rewards_before_or_after_the_penalty() -> None:
    assert answer_of("verl") == {
        "reward": ["one-right", "all-right-one-long"], "score": ["one-right"], "buffer": ["score", 32, 1],
    }  # fmt: skip


def test_openrlhf_drops_groups_whose_mean_score_is_a_bound_and_samples_from_the_top_k() -> None:
    assert answer_of("openrlhf") == {"scores": ["one-right", "all-half-right"], "top_k": 50}
