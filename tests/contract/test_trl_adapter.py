"""The adapter against the real parsers of the pinned TRL, in TRL's own environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.run_file import RECIPES, read_yaml
from envs.build import lock_file
from tests.contract.adapter_answers import answers, changed

pytestmark = [pytest.mark.contract, pytest.mark.slow]

OPENR1 = RECIPES / "openr1" / "qwen2.5-math-7b.yaml"


def test_trl_refuses_what_it_should_and_accepts_every_run(tmp_path: Path) -> None:
    mistakes = {
        "misspelt": ("full", "native", "gradient_checkpointin", True),
        "abbreviated": ("full", "native", "max_grad", 1.0),
        "wrong_type": ("full", "native", "logging_nan_inf_filter", "perhaps"),
        "no_such_schedule": ("full", "optimizer", "schedule", "zigzag"),
        "no_such_loss": ("demo", "objective", "loss", "best"),
        "indivisible": ("demo", "batch", "prompts_per_update", 15),
        "indivisible_full": ("full", "batch", "samples_per_prompt", 9),
        "set_twice": ("full", "native", "learning_rate", 1.0),
        "no_such_prompt": ("prompt", "politely"),
        "no_such_reward": ("rewards", [{"function": "recipes.openr1.reward.kindness", "weight": 1.0}]),
    }
    files = [changed(tmp_path, name, read_yaml(OPENR1), *where) for name, where in mistakes.items()]
    runs = sorted((RECIPES / "openr1").glob("*.yaml"))
    said = answers("trl", [*runs, *files])

    for run in runs:
        assert said[run.stem, "demo"] == said[run.stem, "full"] == "accepted"
    keys = {
        ("misspelt", "full"): "full.native.gradient_checkpointin",
        ("abbreviated", "full"): "full.native.max_grad",
        ("wrong_type", "full"): "full.native.logging_nan_inf_filter",
        ("no_such_schedule", "full"): "full.optimizer.schedule",
        ("no_such_loss", "demo"): "demo.objective.loss",
        ("indivisible", "demo"): "demo.batch.prompts_per_update",
        ("indivisible_full", "full"): "full.batch.prompts_per_update",
        ("set_twice", "full"): "full.native.learning_rate",
        ("no_such_prompt", "demo"): "politely",
        ("no_such_reward", "full"): "kindness",
    }
    for (name, scale), key in keys.items():
        answer = said[name, scale]
        assert answer.startswith("refused:") and f"{name}.yaml" in answer and key in answer, answer
    # A mistake at one scale does not spoil the other.
    assert said["misspelt", "demo"] == said["indivisible", "full"] == "accepted"


@pytest.mark.parametrize("package", ["trl", "transformers", "math-verify"])
def test_cpu_and_cuda_locks_pin_the_same_release(package: str) -> None:
    pins = {
        device: [line for line in lock_file("trl", device).read_text().splitlines() if line.startswith(f"{package}==")]
        for device in ("cpu", "cuda")
    }
    assert pins["cpu"] == pins["cuda"] != []
