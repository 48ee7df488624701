"""The adapter against the real parsers of the pinned TRL, in TRL's own environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from contracts.run_file import RECIPES, ROOT, read_yaml
from grading.extraction import last_boxed
from recipes.runs import run_names
from tests.contract.adapter_answers import ACCEPTED, answers, changed
from tests.hostile_text import TEXTS
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]

OPENR1 = RECIPES / "openr1" / "qwen2.5-math-7b.yaml"


def test_trl_refuses_what_it_should_and_accepts_every_run(tmp_path: Path) -> None:
    mistakes = {
        "misspelt": ("full", "native", "gradient_checkpointin", True),
        "abbreviated": ("full", "native", "max_grad", 1.0),
        "wrong_type": ("full", "native", "logging_nan_inf_filter", "perhaps"),
        "no_such_schedule": ("full", "optimizer", "schedule", "zigzag"),
        "no_such_loss": ("demo", "objective", "loss_aggregation", "best"),
        "indivisible": ("demo", "batch", "prompts_per_update", 15),
        "indivisible_full": ("full", "batch", "samples_per_prompt", 9),
        "too_few_problems": ("full", "batch", "prompts_per_step", 12800),
        "set_twice": ("full", "native", "learning_rate", 1.0),
        "no_such_prompt": ("prompt", "politely"),
        "no_such_reward": ("rewards", [{"function": "recipes.openr1.reward.kindness", "weight": 1.0}]),
    }
    files = [changed(tmp_path, name, read_yaml(OPENR1), *where) for name, where in mistakes.items()]
    runs = [RECIPES / f"{name}.yaml" for name in run_names() if name.startswith("openr1/")]
    answer = answers("trl", [*runs, *files])

    for run in runs:
        assert answer[run.stem, "demo"] == answer[run.stem, "full"] == ACCEPTED
    refusals = {
        ("misspelt", "full"): ("refused-by-parser", "native.gradient_checkpointin"),
        ("abbreviated", "full"): ("refused-by-parser", "native.max_grad"),
        ("wrong_type", "full"): ("refused-by-parser", "native.logging_nan_inf_filter"),
        ("no_such_schedule", "full"): ("refused-by-parser", "optimizer.schedule"),
        ("no_such_loss", "demo"): ("schema-broken", ""),
        ("indivisible", "demo"): ("batch-does-not-divide", "batch.prompts_per_update"),
        ("indivisible_full", "full"): ("batch-does-not-divide", "batch.prompts_per_update"),
        ("too_few_problems", "full"): ("too-few-problems", "batch.prompts_per_step"),
        ("set_twice", "full"): ("setting-stated-twice", "native.learning_rate"),
        ("no_such_prompt", "demo"): ("unknown-name", ""),
        ("no_such_reward", "full"): ("reward-cannot-be-loaded", ""),
    }
    assert {case: answer[case] for case in refusals} == refusals
    # A mistake at one scale does not spoil the other.
    assert answer["misspelt", "demo"] == answer["indivisible", "full"] == ACCEPTED


HOOK = """
import json, os, sys
from pathlib import Path
from types import SimpleNamespace
from frameworks import rollout_log
from recipes import rewards
work, texts = Path(sys.argv[1]), json.load(sys.stdin)
os.environ |= rewards.environment([{"function": "recipes.openr1.reward.boxed", "weight": 2.0}])
os.environ |= {rollout_log.VARIABLE: str(rollout_log.start_attempt(work, 0).folder), "CROSSZERO_NATIVE_STEPS": "2"}
from frameworks.trl.reward_hook import reward
columns = {name: [name] * len(texts) for name in ("problem_id", "task", "answer", "prefill")}
columns["meta"] = ["{}"] * len(texts)
rewards = reward(["asked"] * len(texts), texts, trainer_state=SimpleNamespace(global_step=4), unused=[0], **columns)
((step, rows),) = rollout_log.read(work, rollout_log.Batch(1, len(texts))).items()
print(json.dumps([step, rewards, [row["completion"] for row in rows]]))
"""


def test_the_reward_hook_records_hostile_texts_with_their_step(tmp_path: Path) -> None:
    texts = [r"\boxed{1}", *TEXTS.values()]
    done = subprocess.run(
        [warm_python("trl"), "-c", HOOK, tmp_path],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rewards = [2.0 * (last_boxed(text) is not None) for text in texts]
    assert json.loads(done.stdout.strip().split("\n")[-1]) == [3, rewards, texts]
