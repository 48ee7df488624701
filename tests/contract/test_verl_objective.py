"""What verl is told to optimise is what was published, where its defaults are not, on fixed tensors."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.run_file import ROOT
from frameworks.adapter import Paths
from frameworks.verl.command import command_line, trainer_overrides
from frameworks.verl.objective import NAMED_ESTIMATORS, NOT_TRAINED
from recipes.runs import load_run
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]

HERE = Path(__file__).parent
LONGEST = 24  # max_response_tokens
RUNS = ("tinyzero/ppo-3b", "tinyzero/grpo-3b", "logicrl/qwen2.5-7b", "simplerl/qwen2.5-math-7b-zoo")


def overrides_of(name: str, without: tuple[str, ...] = (), **objective: Any) -> list[str]:
    """The overrides that train the objective of a full-scale run on the CPU, less some."""
    full, demo = load_run(name, "full"), load_run("tinyzero/grpo-3b", "demo")
    stage = dataclasses.replace(
        demo.stages[0],
        objective=full.stages[0].objective | objective,
        rollout=demo.stages[0].rollout | {"max_response_tokens": LONGEST},
        optimizer=demo.stages[0].optimizer | {"max_grad_norm": 0.7},
    )
    run = dataclasses.replace(demo, algorithm=full.algorithm, model=full.model)
    flags = trainer_overrides(run, stage, 0, Paths(Path("problems"), Path("model"), Path("work")), Path("ray"))
    return command_line({key: value for key, value in flags.items() if key.rpartition(".")[2] not in without})


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    cases = {name: overrides_of(name) for name in RUNS}
    cases["by_default"] = overrides_of("tinyzero/grpo-3b", without=("clip_ratio_c",))
    cases["dual_clip"] = overrides_of("tinyzero/grpo-3b", dual_clip=3.0)
    cases["constant"] = overrides_of("tinyzero/grpo-3b", loss_aggregation="max_length_mean")
    cases["padded"] = overrides_of(
        "tinyzero/grpo-3b", loss_aggregation="max_length_mean", without=("loss_scale_factor",)
    )
    cases["unbiased_kl"] = overrides_of("tinyzero/grpo-3b", unbiased_kl_gradient=True)
    done = subprocess.run(
        [warm_python("verl"), HERE / "objective_verl.py"], input=json.dumps(cases), capture_output=True, text=True,
        cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def tensors(results: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.array(value) for name, value in results["tensors"].items()}


def published(tensors: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Token losses of PPO without dual clipping, and their derivatives by the log-probabilities."""
    ratio, advantages = np.exp(tensors["new"] - tensors["old"]), tensors["advantages"]
    clipped = np.clip(ratio, 0.8, 1.2) * advantages
    unclipped = ratio * advantages
    losses = -np.minimum(unclipped, clipped) * tensors["mask"]
    return losses, -np.where(unclipped <= clipped, unclipped, 0.0) * tensors["mask"]


@pytest.mark.parametrize("name", RUNS)
def test_there_is_no_dual_clipping_where_the_published_release_had_none(
    results: dict[str, Any], tensors: dict[str, np.ndarray], name: str
) -> None:
    losses, derivatives = published(tensors)
    tokens = tensors["mask"].sum()
    published_result, before = results[name]["6"], results["by_default"]["6"]
    assert published_result["policy"] == pytest.approx(losses.sum() / tokens, rel=1e-5)
    assert np.allclose(published_result["policy_gradient"], derivatives / tokens, rtol=1e-4, atol=1e-7)
    # verl's own default clips the two negative advantages whose ratio is above 3, which then have no gradient
    assert before["policy"] < published_result["policy"] / 1.5
    lost = (np.array(before["policy_gradient"]) == 0) & (np.array(published_result["policy_gradient"]) != 0)
    assert np.argwhere(lost).tolist() == [[0, 0], [2, 0]]
    assert results["dual_clip"]["6"] == before


def test_gradients_are_clipped_where_the_engine_reads_it(results: dict[str, Any]) -> None:
    """Its FSDP engine clips by `optim.clip_grad`; `grad_clip` beside it is read by nothing."""
    assert {results[f"{name} clip_grad"] for name in RUNS} == {0.7}


def test_a_loss_over_a_constant_length_does_not_depend_on_the_padding(
    results: dict[str, Any], tensors: dict[str, np.ndarray]
) -> None:
    losses, derivatives = published(tensors)
    constant = len(losses) * LONGEST  # completions × longest allowed, as in TRL's dr_grpo
    for width in ("6", "12"):
        result = results["constant"][width]
        assert result["policy"] == pytest.approx(losses.sum() / constant, rel=1e-5)
        assert np.allclose(result["policy_gradient"], derivatives / constant, rtol=1e-4, atol=1e-7)
        padded = results["padded"][width]  # without a factor the divisor is the width of the batch
        assert padded["policy"] == pytest.approx(losses.sum() / (len(losses) * int(width)), rel=1e-5)
        assert np.allclose(padded["policy_gradient"], derivatives / (len(losses) * int(width)), rtol=1e-4, atol=1e-7)


def test_the_gradient_of_k3_is_that_of_its_formula(results: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    ratio = tensors["reference"] - tensors["new"]
    terms, tokens = np.exp(ratio) - ratio - 1, tensors["mask"].sum()
    for name in ("tinyzero/grpo-3b", "logicrl/qwen2.5-7b", "simplerl/qwen2.5-math-7b-zoo"):
        result = results[name]["6"]
        assert result["kl"] == pytest.approx((terms * tensors["mask"]).sum() / tokens, rel=1e-5)
        assert np.allclose(result["kl_gradient"], (1 - np.exp(ratio)) * tensors["mask"] / tokens, rtol=1e-4, atol=1e-7)
    unbiased = results["unbiased_kl"]["6"]
    assert unbiased["kl"] == pytest.approx(results["tinyzero/grpo-3b"]["6"]["kl"])
    assert np.allclose(unbiased["kl_gradient"], -ratio * tensors["mask"] / tokens, rtol=1e-4, atol=1e-7)


def test_whitening_divides_by_one_less_than_the_number_of_tokens(
    results: dict[str, Any], tensors: dict[str, np.ndarray]
) -> None:
    advantages = np.array(results["whitened"])[tensors["mask"].astype(bool)]
    assert advantages.mean() == pytest.approx(0, abs=1e-6)
    assert advantages.std(ddof=1) == pytest.approx(1, abs=1e-5) != pytest.approx(advantages.std(ddof=0), abs=1e-3)


ESTIMATES = """
import inspect, json, re, sys
import numpy as np
import torch
from verl import DataProto
from verl.trainer.config import AlgoConfig
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
source = inspect.getsource(PPOTrainer._compute_advantage)
fields = json.loads(re.search(r"fields = (\\[.*?\\])", source, re.DOTALL)[1])
def computes(name):
    tensors = {field: torch.rand(4, 3) for field in fields if field != "uid"}
    tensors |= {"response_mask": torch.ones(4, 3), "token_level_rewards": tensors["rm_scores"]}
    data = DataProto.from_dict(tensors, {"uid": np.array(["a", "a", "b", "b"], dtype=object)})
    try:
        compute_advantage_for_multi_trajectories(
            data, batch_keys=[f"{row}_0_0" for row in range(4)], adv_estimator=name, config=AlgoConfig()
        )
    except (AssertionError, KeyError, TypeError):
        return False
    return True
print(json.dumps([name for name in json.load(sys.stdin) if not computes(name)]))
"""


def test_the_trainer_lacks_what_the_refused_estimators_need() -> None:
    done = subprocess.run(
        [warm_python("verl"), "-c", ESTIMATES], input=json.dumps(list(NAMED_ESTIMATORS.values())), capture_output=True,
        text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [NAMED_ESTIMATORS[name] for name in NOT_TRAINED]
