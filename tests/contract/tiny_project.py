"""A copy of the project with one tiny run, trained for real with the commands that the workflow gives."""

from __future__ import annotations

import os
import re
import shutil
import string
import subprocess
from pathlib import Path
from typing import Any

import yaml

from contracts.run_file import ROOT, read_yaml
from envs.build import python
from tests.contract.tiny_model import copy_model
from tests.forked_command import run_module
from tests.warm_python import warm_python

PARTS = ("config", "contracts", "envs", "eval", "frameworks", "grading", "recipes", "system", "tasks")
RUN, WORK, STEPS, SAVED = "tiny/ppo", "work", 6, [2, 4, 6]
FAIL_FILE, WAIT_FILE = "fail", "wait"  # in the copy: what the reward does once it has judged so many completions
COMPLETIONS_OF_A_STEP = 16
PROMPT = "r1-tags"  # vLLM on a CPU keeps blocks of 128 tokens, which shorter prompts do not fill
STOPS = list(string.digits)  # 10 of 259 tokens: most completions of 24 random tokens would have one
REWARD = '''
"""A reward that any model can raise: the share of printable characters. It waits or fails where the test says so."""
import pathlib, time
from recipes.rewards import Reward

FOLDER = pathlib.Path(__file__).parents[2]
seen = 0


def reached(name):
    file = FOLDER / name
    return file.exists() and seen > int(file.read_text())


def printable(completions, problems):
    global seen
    seen += len(completions)
    if reached("fail"):
        raise RuntimeError("the reward is broken")
    while reached("wait"):
        time.sleep(0.05)
    return [Reward(sum(c.isascii() for c in text) / max(len(text), 1), "wrong") for text in completions]
'''
DEMO: dict[str, Any] = {
    "model": "demo",
    "dataset": "arithmetic",
    "steps": STEPS,
    "checkpoints": SAVED,
    "batch": {"prompts_per_step": 8, "prompts_per_update": 4, "samples_per_prompt": 2, "samples_per_device": 8},
    "rollout": {"temperature": 1.0, "max_prompt_tokens": 640, "max_response_tokens": 24, "stop": STOPS},
    "optimizer": {"learning_rate": 1e-3, "critic_learning_rate": 1e-3, "max_grad_norm": 1.0, "critic_warmup_steps": 1},
    "objective": {"kl_coefficient": 0.01, "kl_in": "reward", "clip_ratio": 0.2, "gamma": 1.0, "gae_lambda": 0.95},
    "hardware": {"gpus": 0, "cpus": 1, "memory_gb": 8, "hours": 1},
    "evaluation": {"protocol": "demo", "benchmarks": ["arithmetic_expressions"]},
}


def make(folder: Path, framework: str = "verl", algorithm: str = "ppo", **changes: Any) -> Path:
    """The copy, with a model of random weights and 32 problems; `changes` are made in the run's values."""
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".envs").symlink_to(ROOT / ".envs")
    recipe = folder / "recipes" / "tiny"
    recipe.mkdir()
    (recipe / "__init__.py").touch()
    (recipe / "reward.py").write_text(REWARD)
    content = {
        "title": "tiny",
        "framework": framework,
        "algorithm": algorithm,
        "prompt": PROMPT,
        "rewards": [{"function": "recipes.tiny.reward.printable", "weight": 1.0}],
        "full": DEMO | changes,
        "demo": DEMO | changes,
    }
    (recipe / "ppo.yaml").write_text(yaml.safe_dump(content))
    arithmetic = folder / "tasks" / "arithmetic" / "task.yaml"
    settings = read_yaml(arithmetic)
    settings["datasets"]["arithmetic"]["rows"] = 32
    arithmetic.write_text(yaml.safe_dump(settings))
    copy_model(folder / "model", context=1024, environment=framework)
    loading = ("arithmetic", "--output", "problems.parquet")
    run_module("tasks.load_problems", *loading, cwd=folder).check_returncode()
    return folder


def command(
    folder: Path, verb: str, *arguments: str | Path, framework: str = "verl", work: str = WORK
) -> list[str | Path]:
    """`frameworks` for the run, as the workflow gives it; a training in an interpreter of its own."""
    common = ["--run", RUN, "--scale", "demo", "--seed", "0", "--model", "model", "--work", work]
    interpreter = python(framework) if verb == "train" else warm_python(framework)
    return [interpreter, "-m", "frameworks", verb, *common, *arguments]


def train(folder: Path, framework: str = "verl", work: str = WORK) -> subprocess.Popen[str]:
    """Start training; its output is to be read."""
    arguments = ("--problems", "problems.parquet", "--output", "log.parquet", "--rollouts", "rollouts.parquet")
    return subprocess.Popen(
        command(folder, "train", *arguments, framework=framework, work=work),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def after_steps(file: Path, steps: int) -> Path:
    """Have the reward wait or fail once it has seen the completions of so many steps, until the file is deleted."""
    file.write_text(str(steps * COMPLETIONS_OF_A_STEP))
    return file


def text_after_stops(rollouts: list[dict[str, Any]]) -> list[str]:
    """What stands after the first stop of each rollout; fails where no completion ended with a stop."""
    ends = [re.search("[0-9](.*)", row["completion"], re.DOTALL) for row in rollouts if row["completion"]]
    assert any(ends)
    return [end[1] for end in ends if end and end[1]]


def processes(folder: Path) -> list[str]:
    """Commands of living processes that were started with an environment that names this copy."""
    commands = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(entry.name) != os.getpid() and str(folder).encode() in environment and command:
            commands.append(command.replace(b"\0", b" ").decode(errors="replace")[:100])
    return commands
