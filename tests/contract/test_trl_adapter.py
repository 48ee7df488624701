"""The adapter against the real parsers of the pinned TRL, in TRL's own environment."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from contracts.run_file import RECIPES, ROOT, read_yaml
from envs.build import lock_file, python

pytestmark = [pytest.mark.contract, pytest.mark.slow]

SCRIPT = """
import sys, yaml
from pathlib import Path
from contracts.errors import UserError
from contracts.run_file import parse_run
from recipes.frameworks import trl
for line in sys.stdin:
    file = Path(line.strip())
    for scale in ("demo", "full"):
        try:
            trl.check(parse_run(yaml.safe_load(file.read_text()), "test/" + file.stem, file, scale))
            print(file.stem, scale, "accepted")
        except UserError as error:
            print(file.stem, scale, "refused:", error)
"""


def answers(files: list[Path]) -> dict[tuple[str, str], str]:
    """What the adapter says of each file at each scale; one process, because importing TRL takes seconds."""
    done = subprocess.run(
        [python("trl"), "-c", SCRIPT], input="\n".join(map(str, files)), capture_output=True, text=True, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        name, scale, answer = line.split(" ", 2)
        found[name, scale] = answer
    return found


def changed(folder: Path, name: str, *path_and_value: Any) -> Path:
    """A copy of OpenR1's run file with one value set, the key given as a path."""
    content = read_yaml(RECIPES / "openr1" / "qwen2.5-math-7b.yaml")
    *path, key, value = path_and_value
    at = content
    for word in path:
        at = at.setdefault(word, {})
    at[key] = value
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


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
    files = [changed(tmp_path, name, *where) for name, where in mistakes.items()]
    runs = sorted((RECIPES / "openr1").glob("*.yaml"))
    said = answers([*runs, *files])

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
