"""What OpenRLHF is told to optimise is what was published, where it can be: loss and gradient on fixed tensors."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.run_file import ROOT
from envs.build import python
from frameworks import rollout_log
from frameworks.openrlhf import reward_hook
from frameworks.openrlhf.command import SAMPLING, agent_sampling, command_line, trainer_flags
from recipes import rewards
from recipes.runs import load_run
from tests import needs
from tests.contract.tiny_model import copy_model
from tests.user_errors import refused
from tests.warm_python import warm_python

PYTHON = python("openrlhf")
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    needs.environments("openrlhf"),
]

HERE = Path(__file__).parent
PPO, GRPO = "simplerl/qwen2.5-math-7b", "simplerl/qwen2.5-math-7b-grpo"
MANY = [8.0] + [0.0] * 127  # one right answer in 128


def arguments_of(name: str, without: tuple[str, ...] = (), samples: int = 8, **objective: Any) -> list[str]:
    """The command that trains the objective of a full-scale run, with `objective` in place of its settings."""
    run = load_run(name, "full")
    stage = run.stages[0]
    kept = {key: value for key, value in (stage.objective | objective).items() if value is not None}
    batch = stage.batch | {"samples_per_prompt": samples}
    stage = dataclasses.replace(stage, objective=kept, batch=batch)
    flags = trainer_flags(run, stage, 0, Path("data"), Path("model"), Path("output"))
    return command_line({flag: value for flag, value in flags.items() if flag not in without})


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    model = copy_model(tmp_path_factory.mktemp("objective") / "model", environment="openrlhf")
    in_loss = {"kl_in": "loss", "kl_estimator": "k3", "kl_coefficient": 0.5, "reward_clip": None}
    loss = {"loss_aggregation": "token_mean", "logits_temperature": None}
    cases = {
        "published": {"arguments": arguments_of(PPO), "asks": True},
        "divided": {"arguments": arguments_of(PPO, logits_temperature=None)},
        "kl": {"arguments": arguments_of(PPO, **loss, **in_loss)},
        "unbiased_kl": {"arguments": arguments_of(PPO, **loss, **in_loss, unbiased_kl_gradient=True)},
        # what the adapter refuses, asked of the release itself
        "kl_per_completion": {
            "arguments": [*arguments_of(PPO, **loss, **in_loss), "--actor.loss_agg_mode", "seq-mean-token-mean"]
        },
        "entropy_per_completion": {"arguments": [*arguments_of(PPO), "--actor.entropy_coef", "0.3"]},
        "whitened": {"arguments": arguments_of(PPO), "rewards": [1.0, -0.5, 0.0, 1.0, 1.0, -1.0, 0.3, 0.0]},
        "group": {"arguments": arguments_of(GRPO, samples=128), "rewards": MANY},
        "group_by_default": {
            "arguments": arguments_of(GRPO, samples=128, without=("reward.clip_range",)),
            "rewards": MANY,
        },
        "clipped": {"arguments": arguments_of(PPO, gae_lambda=1.0), "rewards": [30.0, 0.0] * 4},
        "unclipped": {"arguments": arguments_of(PPO, gae_lambda=1.0, reward_clip=None), "rewards": [30.0, 0.0] * 4},
        "at_the_bound": {
            "arguments": arguments_of(PPO, gae_lambda=1.0, reward_clip=None),
            "rewards": [10.0, 0.0] * 4,
        },
    }
    environment = {
        "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "DS_ACCELERATOR": "cpu", SAMPLING["temperature"][0]: "0.6",
        rollout_log.VARIABLE: str(rollout_log.start_attempt(tmp_path_factory.mktemp("work"), 0).folder),
        **rewards.environment(load_run(PPO, "full").rewards), **reward_hook.environment(["<|im_end|>"]),
    }  # fmt: skip
    done = subprocess.run(
        [warm_python("openrlhf"), HERE / "objective_openrlhf.py", model], input=json.dumps(cases),
        capture_output=True, text=True, cwd=ROOT, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_completions_are_sampled_at_the_temperature_of_the_run(results: dict[str, Any]) -> None:
    run = load_run(PPO, "full")
    assert agent_sampling(run.stages[0]) == {"temperature": 0.6}
    assert agent_sampling(load_run(PPO, "demo").stages[0]) == {}
    assert results["published asked"] == [1.0, 0.6, -1.0]  # no box in the answer


def per_completion(terms: np.ndarray, mask: np.ndarray) -> float:
    return float(((terms * mask).sum(1) / mask.sum(1)).mean())


def over_tokens(terms: np.ndarray, mask: np.ndarray) -> float:
    return float((terms * mask).sum() / mask.sum())


def policy_terms(case: dict[str, Any], temperature: str) -> tuple[np.ndarray, np.ndarray]:
    """Token losses of PPO from the model's plain probabilities at a temperature, and the mask."""
    tensors = {name: np.array(value) for name, value in case["given"].items()}
    ratio = np.exp(np.array(case["own"][temperature]) - tensors["action_log_probs"])
    advantages = tensors["advantages"]
    return -np.minimum(ratio * advantages, np.clip(ratio, 0.8, 1.2) * advantages), tensors["action_mask"]


def test_logits_are_divided_by_the_temperature_only_where_the_run_says_so(results: dict[str, Any]) -> None:
    published, divided = results["published"], results["divided"]
    assert published["loss"] == pytest.approx(per_completion(*policy_terms(published, "1.0")), rel=1e-3)
    assert divided["loss"] == pytest.approx(per_completion(*policy_terms(divided, "0.6")), rel=1e-3)
    assert divided["loss"] != pytest.approx(published["loss"], rel=0.05)
    before, after = np.array(divided["gradient"]), np.array(published["gradient"])
    assert np.linalg.norm(before - after) > 0.1 * np.linalg.norm(after)


def kl_terms(case: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    ratio = np.array(case["given"]["base_action_log_probs"]) - np.array(case["own"]["0.6"])
    return np.exp(ratio) - ratio - 1, np.array(case["given"]["action_mask"])


def test_kl_and_entropy_are_averaged_over_tokens_whatever_the_loss(results: dict[str, Any]) -> None:
    case = results["kl_per_completion"]
    policy = per_completion(*policy_terms(case, "0.6"))
    terms, mask = kl_terms(case)
    terms = terms.clip(max=10)
    assert case["loss"] == pytest.approx(policy + 0.5 * over_tokens(terms, mask), rel=1e-3)
    assert case["loss"] != pytest.approx(policy + 0.5 * per_completion(terms, mask), rel=1e-2)
    case = results["entropy_per_completion"]
    policy, entropies = per_completion(*policy_terms(case, "1.0")), np.array(case["entropies"])
    assert case["loss"] == pytest.approx(policy - 0.3 * over_tokens(entropies, mask), rel=1e-4)
    assert case["loss"] != pytest.approx(policy - 0.3 * per_completion(entropies, mask), rel=4e-4)
    for objective, key in (
        ({"kl_in": "loss", "reward_clip": None}, "kl_coefficient"),
        ({"entropy_coefficient": 0.3}, "entropy_coefficient"),
    ):
        with refused("settings-conflict", key=f"objective.{key}"):
            arguments_of(PPO, **objective)


def test_the_gradient_of_k3_is_that_of_its_formula_unless_asked_otherwise(results: dict[str, Any]) -> None:
    plain, unbiased = results["kl"], results["unbiased_kl"]
    assert plain["loss"] == pytest.approx(unbiased["loss"], rel=1e-5)
    before, after = np.array(unbiased["gradient"]), np.array(plain["gradient"])
    assert np.linalg.norm(before - after) > 0.1 * np.linalg.norm(after)


def test_whitening_divides_by_the_number_of_tokens(results: dict[str, Any]) -> None:
    advantages = np.array(results["whitened"])
    assert advantages.mean() == pytest.approx(0, abs=1e-5)
    assert advantages.std(ddof=0) == pytest.approx(1, abs=1e-4) != pytest.approx(advantages.std(ddof=1), abs=1e-3)


def test_a_group_is_not_clipped_and_a_reward_is_where_the_run_says_so(results: dict[str, Any]) -> None:
    largest = 127 / np.sqrt(128)  # of one right answer in n: (n - 1) / √n
    assert max(results["group"]) == pytest.approx(largest, rel=1e-4)
    assert max(results["group_by_default"]) == pytest.approx(10)
    assert results["clipped"] == results["at_the_bound"] != results["unclipped"]


def test_the_critic_is_averaged_over_tokens(results: dict[str, Any]) -> None:
    """recipes/simplerl/published_script.md says so; the published release averaged each completion first, to 1.25."""
    assert results["critic"] == pytest.approx(0.5 * (4 + 1 + 1 + 1) / 4)
