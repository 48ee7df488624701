"""The adapter against the real parser of the pinned OpenRLHF, and its sources, in OpenRLHF's own environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from contracts.run_file import RECIPES, ROOT, inherit, read_yaml
from envs.build import lock_file, python
from recipes.runs import run_names
from tests.contract.adapter_answers import answers, changed

PYTHON = python("openrlhf")
RUN = RECIPES / "simplerl" / "qwen2.5-math-7b.yaml"
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="OpenRLHF's environment is not built (envs/build.py openrlhf)"),
]

# What the release's parser gives each flag that a command line leaves out.
DEFAULTS = """
import json
from frameworks.openrlhf.parser_check import parse
args = parse(["--vllm.num_engines", "1", "--actor.model_name_or_path", "m", "--reward.remote_url", "r.py"])
print(json.dumps([args.vllm.tensor_parallel_size, args.actor.min_lr_ratio, list(args.reward.clip_range),
                  args.algo.kl.target, args.critic.freezing_steps]))
"""

# Every file of the release, as it is rewritten for the CPU.
REWRITTEN = """
import importlib.util, json
from pathlib import Path
from frameworks.openrlhf.cpu import rewrites
rewrites.add(rewrites.FLOAT32_RULES, rewrites.FLOAT32)
root = Path(importlib.util.find_spec("openrlhf").submodule_search_locations[0])
found = {}
for file in root.rglob("*.py"):
    _, done = rewrites.rewrite(file.read_text())
    if done:
        found["openrlhf." + str(file.relative_to(root))[:-3].replace("/", ".")] = done
print(json.dumps([found, rewrites.REWRITES]))
"""


def run(script: str) -> str:
    done = subprocess.run(
        [PYTHON, "-c", script], capture_output=True, text=True, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_openrlhf_refuses_what_it_should_and_accepts_every_run(tmp_path: Path) -> None:
    mistakes: dict[str, tuple[tuple[Any, ...], str]] = {
        "misspelt": (("full", "native", "actor.gradient_checkpointing_enabel", True), "checkpointing_enable'?"),
        "abbreviated": (("full", "native", "vllm.gpu_memory", 0.5), "full.native.vllm.gpu_memory: "),
        "old_style": (("full", "native", "actor_learning_rate", 5e-7), "no setting 'actor_learning_rate'"),
        "wrong_type": (
            ("full", "native", "vllm.gpu_memory_utilization", "half"),
            "native.vllm.gpu_memory_utilization: ",
        ),
        "wrong_choice": (("full", "native", "actor.policy_loss_type", "best"), "full.native.actor.policy_loss_type: "),
        "no_such_schedule": (("full", "optimizer", "schedule", "zigzag"), "full.optimizer.schedule: "),
        "no_such_loss": (("full", "objective", "loss_aggregation", "best"), "full.objective.loss_aggregation: "),
        "no_such_engine": (("full", "rollout", "engine", "transformers"), "full.rollout.engine: "),
        "indivisible": (("full", "batch", "samples_per_device", 3), "full.batch.prompts_per_update: "),
        "indivisible_step": (("full", "batch", "prompts_per_step", 1000), "full.batch.prompts_per_step: "),
        "ends_within_a_pass": (
            ("full", "stages", [{"steps": 100, "checkpoints": [100]}]),
            "full.steps: OpenRLHF ends with a pass, 8 steps over 8521 problems: 96 or 104",
        ),
        "too_few_problems": (("full", "dataset", "knights_knaves_3ppl_train"), "1024 prompts are more than the 900"),
        "no_gpus_left": (("full", "rollout", "gpus", 32), "full.rollout.gpus: "),
        "set_twice": (("full", "native", "actor.adam.lr", 1.0), "is set by full.optimizer.learning_rate already"),
        "assertion": (("full", "native", "train.partial_rollout_enable", True), "requires --train.async_enable"),
        "no_such_prompt": (("prompt", "politely"), "politely"),
        "no_such_reward": (("rewards", [{"function": "recipes.simplerl.reward.kindness", "weight": 1.0}]), "kindness"),
    }
    files = [changed(tmp_path, name, read_yaml(RUN), *where) for name, (where, _) in mistakes.items()]
    runs = [RECIPES / f"{name}.yaml" for name in run_names()]
    runs = [file for file in runs if inherit(read_yaml(file), file).get("framework") == "openrlhf"]
    said = answers("openrlhf", [*runs, *files])

    for file in runs:
        assert said[file.stem, "demo"] == said[file.stem, "full"] == "accepted"
    for name, (_, words) in mistakes.items():
        answer = said[name, "full"]
        assert answer.startswith("refused:") and f"{name}.yaml" in answer and words in answer, answer
    # A mistake at one scale does not spoil the other.
    assert said["misspelt", "demo"] == said["indivisible", "demo"] == "accepted"


def test_what_the_command_leaves_out_is_what_the_recipe_counts_on() -> None:
    assert json.loads(run(DEFAULTS)) == [1, 0.1, [-10, 10], None, -1]  # as in tests/unit/test_simplerl.py


def test_every_line_that_needs_cuda_is_rewritten_as_often_as_written_down() -> None:
    found, expected = json.loads(run(REWRITTEN))
    assert found == expected
    assert sum(sum(counts.values()) for counts in found.values()) == 53


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_locks_hold_names_and_versions_alone(device: str) -> None:
    assert all("==" in line and "/" not in line for line in lock_file("openrlhf", device).read_text().splitlines())
