"""What TRL is told to optimise is what was published, where its defaults are not, on fixed tensors."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.run_file import ROOT
from frameworks.trl.command import command_line, trainer_flags
from recipes.runs import load_run
from tests.contract.tiny_model import copy_model
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]

HERE = Path(__file__).parent
KL, SAMPLER = "use_bias_correction_kl", "vllm_importance_sampling_correction"
DISTILLED, MATH = "openr1/deepseek-r1-distill-qwen-7b", "openr1/qwen2.5-math-7b"
CROSSCHECK, COUNTDOWN = "crosscheck/trl", "tinyzero/grpo-3b-trl"


def arguments_of(name: str, model: Path, without: Sequence[str] = (), **objective: Any) -> list[str]:
    """The command that trains the objective of a full-scale run, for a tiny model; less some flags."""
    full, demo = load_run(name, "full"), load_run("openr1/qwen2.5-math-7b", "demo")
    rollout = demo.stages[0].rollout | {"temperature": full.stages[0].rollout["temperature"]}
    batch = {"prompts_per_update": 2, "samples_per_prompt": 4, "samples_per_device": 8}
    kept = {key: value for key, value in (full.stages[0].objective | objective).items() if value is not None}
    stage = dataclasses.replace(demo.stages[0], objective=kept, rollout=rollout, batch=batch)
    flags = trainer_flags(demo, stage, 0, Path("data"), model, Path("output"))
    flags["report_to"] = ("none", "")
    flags["dtype"] = (full.stages[0].native.get("dtype", "float32"), "")
    return command_line(
        {flag: value for flag, value in flags.items() if flag not in (*without, "output_dir", "reward_funcs")}
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    model = copy_model(tmp_path_factory.mktemp("objective") / "model", environment="trl")
    cases = {
        "kl": {"arguments": arguments_of(DISTILLED, model, ["dtype"]), "logits_temperature": 1.0},
        "kl_by_default": {"arguments": arguments_of(DISTILLED, model, ["dtype", KL]), "logits_temperature": 1.0},
        "kl_unbiased": {
            "arguments": arguments_of(DISTILLED, model, ["dtype"], unbiased_kl_gradient=True), "logits_temperature": 1.0
        },
        "divided": {
            "arguments": arguments_of(DISTILLED, model, ["dtype"], logits_temperature=None), "logits_temperature": 0.9
        },
        "tokens": {"arguments": arguments_of(MATH, model, ["dtype"]), "logits_temperature": 0.9},
        "sampler": {"arguments": arguments_of(CROSSCHECK, model), "logits_temperature": 1.0, "sampler": True},
        "sampler_by_default": {
            "arguments": arguments_of(CROSSCHECK, model, [SAMPLER]), "logits_temperature": 1.0, "sampler": True
        },
        "countdown": {"arguments": arguments_of(COUNTDOWN, model, ["entropy_coef"]), "logits_temperature": 1.0},
        "entropy": {"arguments": arguments_of(COUNTDOWN, model), "logits_temperature": 1.0},
        "bfloat16": {"arguments": arguments_of(DISTILLED, model), "logits_temperature": 1.0},
    }  # fmt: skip
    done = subprocess.run(
        [warm_python("trl"), HERE / "objective_trl.py", model], input=json.dumps(cases), capture_output=True, text=True,
        cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def distance(case: dict[str, Any], other: list[float]) -> float:
    """Of a case's gradient from another, relative to the other."""
    return float(np.linalg.norm(np.array(case["gradient"]) - np.array(other)) / np.linalg.norm(other))


@pytest.mark.parametrize("name", ["kl", "tokens", "sampler", "countdown"])
def test_loss_and_gradient_are_the_published_ones(results: dict[str, dict[str, Any]], name: str) -> None:
    """In order: the distilled model's run, the Math model's, the cross-check and TinyZero's but for its entropy."""
    case = results[name]
    assert case["loss"] == pytest.approx(case["published"], rel=1e-4, abs=1e-6)
    assert distance(case, case["published_gradient"]) < 1e-3


def test_the_gradient_of_k3_is_that_of_its_formula(results: dict[str, dict[str, Any]]) -> None:
    """TRL's default multiplies k3 by the ratio of new to old probabilities: the same value, another gradient."""
    case, before = results["kl"], results["kl_by_default"]
    assert before["loss"] == pytest.approx(case["loss"], rel=1e-5)
    assert distance(before, case["gradient"]) > 0.05
    assert results["kl_unbiased"]["gradient"] == before["gradient"]


def test_the_sampler_is_not_corrected_for(results: dict[str, dict[str, Any]]) -> None:
    """TRL's default weighs completions by the ratio of trainer to sampler, and drops those above 3."""
    case, before = results["sampler"], results["sampler_by_default"]
    assert before["loss"] != pytest.approx(case["loss"], rel=0.05)
    assert distance(before, case["gradient"]) > 0.2


def test_logits_are_divided_by_the_temperature_only_where_the_run_says_so(results: dict[str, dict[str, Any]]) -> None:
    case, divided = results["kl"], results["divided"]
    assert case["sampled_at"] == divided["sampled_at"] == 0.9
    assert divided["loss"] == pytest.approx(divided["published"], rel=1e-4)  # which is at 0.9 there
    assert divided["loss"] != pytest.approx(case["loss"], rel=1e-3)
    assert distance(divided, case["gradient"]) > 0.02


def test_the_entropy_of_countdown_is_rewarded(results: dict[str, dict[str, Any]]) -> None:
    case, without = results["entropy"], results["countdown"]
    assert case["loss"] == pytest.approx(without["loss"] - 0.001 * case["entropy"], rel=1e-4)
    assert distance(case, without["gradient"]) > 0


def test_openr1_trains_in_bfloat16(results: dict[str, dict[str, Any]]) -> None:
    case, before = results["bfloat16"], results["kl"]
    assert (case["dtype"], before["dtype"]) == ("torch.bfloat16", "torch.float32")
    assert 1e-3 < distance(case, before["gradient"]) < 0.5
