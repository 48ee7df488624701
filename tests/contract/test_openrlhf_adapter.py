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
from tests import needs
from tests.contract.adapter_answers import ACCEPTED, answers, changed
from tests.warm_python import warm_python

PYTHON = python("openrlhf")
RUN = RECIPES / "simplerl" / "qwen2.5-math-7b.yaml"
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    needs.environments("openrlhf"),
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
rewritten = {}
for file in root.rglob("*.py"):
    _, done = rewrites.rewrite(file.read_text())
    if done:
        rewritten["openrlhf." + str(file.relative_to(root))[:-3].replace("/", ".")] = done
print(json.dumps([rewritten, rewrites.REWRITES]))
"""

# What vLLM's own store still holds after five sends, of a group of one.
SENT = """
import socket, torch
from vllm.distributed.utils import StatelessProcessGroup
from frameworks.openrlhf.cpu.rewrites import StoreBroadcast
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
group = StatelessProcessGroup.create("127.0.0.1", listening.getsockname()[1], 0, 1, listen_socket=listening)
sender = StoreBroadcast(group)
before = group.store.num_keys()
for _ in range(5):
    sender.broadcast(torch.ones(1000), 0)
print(group.store.num_keys() - before)
"""


def run(script: str) -> str:
    done = subprocess.run(
        [warm_python("openrlhf"), "-c", script], capture_output=True, text=True, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_openrlhf_refuses_what_it_should_and_accepts_every_run(tmp_path: Path) -> None:
    parser = "refused-by-parser"
    mistakes: dict[str, tuple[tuple[Any, ...], tuple[str, str]]] = {
        "misspelt": (
            ("full", "native", "actor.gradient_checkpointing_enabel", True),
            (parser, "native.actor.gradient_checkpointing_enabel"),
        ),
        "abbreviated": (("full", "native", "vllm.gpu_memory", 0.5), (parser, "native.vllm.gpu_memory")),
        "old_style": (("full", "native", "actor_learning_rate", 5e-7), (parser, "native.actor_learning_rate")),
        "wrong_type": (
            ("full", "native", "vllm.gpu_memory_utilization", "half"), (parser, "native.vllm.gpu_memory_utilization")
        ),
        "wrong_choice": (
            ("full", "native", "actor.policy_loss_type", "best"), (parser, "native.actor.policy_loss_type")
        ),
        "no_such_schedule": (
            ("full", "optimizer", "schedule", "zigzag"), ("value-not-in-framework", "optimizer.schedule")
        ),
        "no_such_loss": (
            ("full", "objective", "loss_aggregation", "best"),
            ("schema-broken", ""),
        ),
        "no_such_engine": (
            ("full", "rollout", "engine", "transformers"), ("value-not-in-framework", "rollout.engine")
        ),
        "indivisible": (
            ("full", "batch", "samples_per_device", 3), ("batch-does-not-divide", "batch.prompts_per_update")
        ),
        "indivisible_step": (
            ("full", "batch", "prompts_per_step", 1000), ("batch-does-not-divide", "batch.prompts_per_step")
        ),
        "ends_within_a_pass": (
            ("full", "stages", [{"steps": 100, "checkpoints": [100]}]), ("ends-within-a-pass", "steps")
        ),
        "too_few_problems": (
            ("full", "dataset", "knights_knaves_3ppl_train"), ("too-few-problems", "batch.prompts_per_step")
        ),
        "no_gpus_left": (("full", "rollout", "gpus", 32), ("too-few-gpus", "rollout.gpus")),
        "set_twice": (("full", "native", "actor.adam.lr", 1.0), ("setting-stated-twice", "native.actor.adam.lr")),
        "assertion": (("full", "native", "train.partial_rollout_enable", True), (parser, "")),
        "no_such_prompt": (("prompt", "politely"), ("unknown-name", "")),
        "no_such_reward": (
            ("rewards", [{"function": "recipes.simplerl.reward.kindness", "weight": 1.0}]),
            ("reward-cannot-be-loaded", ""),
        ),
    }  # fmt: skip
    files = [changed(tmp_path, name, read_yaml(RUN), *where) for name, (where, _) in mistakes.items()]
    runs = [RECIPES / f"{name}.yaml" for name in run_names()]
    runs = [file for file in runs if inherit(read_yaml(file), file).get("framework") == "openrlhf"]
    answer = answers("openrlhf", [*runs, *files])

    for file in runs:
        assert answer[file.stem, "demo"] == answer[file.stem, "full"] == ACCEPTED
    assert {name: answer[name, "full"] for name in mistakes} == {name: error for name, (_, error) in mistakes.items()}
    # A mistake at one scale does not spoil the other.
    assert answer["misspelt", "demo"] == answer["indivisible", "demo"] == ACCEPTED


def test_what_the_command_leaves_out_is_what_the_recipe_counts_on() -> None:
    assert json.loads(run(DEFAULTS)) == [1, 0.1, [-10, 10], None, -1]  # as in tests/unit/test_simplerl.py


def test_every_line_that_needs_cuda_is_rewritten_as_often_as_written_down() -> None:
    rewritten, expected = json.loads(run(REWRITTEN))
    assert rewritten == expected
    assert sum(sum(counts.values()) for counts in rewritten.values()) == 53


def test_weights_that_were_sent_to_vllm_are_let_go() -> None:
    assert run(SENT).split()[-1] == "1"  # a copy of all weights a step, as released


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_locks_hold_names_and_versions_alone(device: str) -> None:
    assert all("/" not in line for line in lock_file("openrlhf", device).read_text().splitlines())
