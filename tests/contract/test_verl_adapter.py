"""The adapter against the real configuration of the pinned verl, in verl's own environment."""

from __future__ import annotations

import copy
import json
import random
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from contracts.run_file import RECIPES, ROOT, inherit, read_yaml
from frameworks.verl.command import stated_settings
from recipes.runs import load_run, run_names
from tests.contract.adapter_answers import ACCEPTED, SCALES, answers, changed
from tests.contract.tiny_project import DEMO
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]

FULL: dict[str, Any] = {
    **DEMO,
    "model": "qwen2.5-math-7b",
    "batch": {"prompts_per_step": 256, "prompts_per_update": 64, "samples_per_prompt": 8, "samples_per_device": 16},
    "hardware": {"gpus": 8, "sharding": "zero3", "cpus": 64, "memory_gb": 512, "hours": 24},
    "native": {"actor_rollout_ref.rollout.gpu_memory_utilization": 0.6},
}
PPO: dict[str, Any] = {
    "title": "ppo",
    "framework": "verl",
    "algorithm": "ppo",
    "prompt": "boxed",
    "rewards": [{"function": "recipes.openr1.reward.boxed", "weight": 1.0}],
    "demo": DEMO,
    "full": FULL,
}
GRPO: dict[str, Any] = copy.deepcopy(PPO) | {"title": "grpo", "algorithm": "grpo"}
for scale in ("demo", "full"):
    GRPO[scale]["optimizer"] = {"learning_rate": 1e-6, "schedule": "cosine", "warmup_ratio": 0.1}
    GRPO[scale]["objective"] = {
        "kl_coefficient": 0.001,
        "clip_ratio": 0.2,
        "loss_aggregation": "completion_mean",
        "scale_rewards": "group",
    }
PARSER, CHOICE = "refused-by-parser", "value-not-in-framework"
MISTAKES: dict[str, tuple[dict[str, Any], tuple[str, ...], Any, str, str, str]] = {
    # name: base, path, value, scale that is refused, code, key of the answer
    "misspelt": (PPO, ("full", "native", "actor_rollout_ref.rollout.gpu_memory_utilisation"), 0.6, "full",
                 PARSER, "native.actor_rollout_ref.rollout.gpu_memory_utilisation"),
    "misspelt_typed": (PPO, ("full", "native", "+actor_rollout_ref.actor.cliprange"), 0.1, "full",
                       PARSER, "native.+actor_rollout_ref.actor.cliprange"),
    "added_trainer_key": (PPO, ("full", "native", "+trainer.sav_freq"), 5, "full", PARSER, "native.+trainer.sav_freq"),
    "added_data_key": (PPO, ("demo", "native", "+data.max_prompt_tokens"), 5, "demo",
                       PARSER, "native.+data.max_prompt_tokens"),
    "added_ray_key": (PPO, ("full", "native", "+ray_kwargs.ray_init.nmu_cpus"), 5, "full",
                      PARSER, "native.+ray_kwargs.ray_init.nmu_cpus"),
    "estimator": (PPO, ("full", "native", "algorithm.adv_estimator"), "gea", "full",
                  "setting-stated-twice", "native.algorithm.adv_estimator"),
    "policy_loss": (PPO, ("full", "native", "actor_rollout_ref.actor.policy_loss.loss_mode"), "vanila", "full",
                    PARSER, "native.actor_rollout_ref.actor.policy_loss.loss_mode"),
    "legacy_reward": (PPO, ("demo", "native", "custom_reward_function.path"), "r.py", "demo",
                      PARSER, "native.custom_reward_function.path"),
    "legacy_manager": (PPO, ("full", "native", "reward_model.reward_manager"), "naive", "full",
                       PARSER, "native.reward_model.reward_manager"),
    "indivisible": (PPO, ("demo", "batch", "prompts_per_update"), 3, "demo",
                    "batch-does-not-divide", "batch.prompts_per_step"),
    "indivisible_full": (PPO, ("full", "batch", "samples_per_device"), 48, "full",
                         "batch-does-not-divide", "batch.prompts_per_update"),
    "too_few_problems": (PPO, ("full", "batch", "prompts_per_step"), 12800, "full",
                         "too-few-problems", "batch.prompts_per_step"),
    "parallel": (PPO, ("full", "native", "actor_rollout_ref.rollout.tensor_model_parallel_size"), 3, "full",
                 PARSER, "native.actor_rollout_ref.rollout.tensor_model_parallel_size"),
    "set_twice": (PPO, ("full", "native", "actor_rollout_ref.actor.optim.lr"), 1.0, "full",
                  "setting-stated-twice", "native.actor_rollout_ref.actor.optim.lr"),
    "schedule": (PPO, ("full", "optimizer", "schedule"), "zigzag", "full", CHOICE, "optimizer.schedule"),
    "loss": (PPO, ("demo", "objective", "loss_aggregation"), "best", "demo", "schema-broken", ""),
    "critic_without_ppo": (GRPO, ("demo", "optimizer", "critic_learning_rate"), 1e-5, "demo",
                           "setting-not-in-framework", "optimizer.critic_learning_rate"),
    "lambda_without_ppo": (GRPO, ("full", "objective", "gae_lambda"), 0.9, "full",
                           "setting-not-in-framework", "objective.gae_lambda"),
    "scaled_by_batch": (GRPO, ("full", "objective", "scale_rewards"), "batch", "full",
                        CHOICE, "objective.scale_rewards"),
    "engine": (GRPO, ("demo", "rollout", "engine"), "transformers", "demo", CHOICE, "rollout.engine"),
    "no_lengths": (GRPO, ("demo", "rollout"), {"temperature": 1.0}, "demo",
                   "missing-setting", "rollout.max_prompt_tokens"),
    "no_such_reward": (GRPO, ("rewards",), [{"function": "recipes.openr1.reward.kindness", "weight": 1.0}], "full",
                       "reward-cannot-be-loaded", ""),
}  # fmt: skip


VERL_RUNS = [
    name for name in run_names() if inherit(read_yaml(file := RECIPES / f"{name}.yaml"), file)["framework"] == "verl"
]


def settings_of(name: str) -> set[str]:
    """The names of the settings that the stages of a run have at any scale."""
    runs = [load_run(name, scale) for scale in SCALES]
    return {setting for run in runs for stage in run.stages for setting in stated_settings(run, stage)}


def runs_with_all_settings() -> list[str]:
    """Those with the most settings that none before them has, until all are there."""
    settings = {name: settings_of(name) for name in VERL_RUNS}
    chosen, left = [], set[str]().union(*settings.values())
    while left:
        chosen.append(max(VERL_RUNS, key=lambda name: len(settings[name] & left)))
        left -= settings[chosen[-1]]
    return chosen


def assert_accepted(names: list[str]) -> None:
    answer = answers("verl", [RECIPES / f"{name}.yaml" for name in names])
    assert len(answer) == 2 * len(names) and set(answer.values()) == {ACCEPTED}


def test_verl_accepts_runs_with_all_settings() -> None:
    chosen = runs_with_all_settings()
    assert 3 <= len(chosen) < len(VERL_RUNS)
    assert_accepted(chosen)


@pytest.mark.long
def test_verl_accepts_every_run() -> None:
    assert_accepted(VERL_RUNS)


def test_verl_refuses_what_it_should(tmp_path: Path) -> None:
    files = [changed(tmp_path, name, base, *path, value) for name, (base, path, value, *_) in MISTAKES.items()]
    files += [changed(tmp_path, base["title"], base, "prompt", "boxed") for base in (PPO, GRPO)]
    refusals = {(name, scale): (code, key) for name, (*_, scale, code, key) in MISTAKES.items()}
    # A mistake at one scale does not spoil the other.
    accepted = {("misspelt", "demo"), ("indivisible", "full"), *product(("ppo", "grpo"), SCALES)}
    scales = {name: [scale] for name, scale in refusals} | {name: SCALES for name, _ in accepted}
    assert answers("verl", files, scales) == refusals | dict.fromkeys(accepted, ACCEPTED)


HYDRA = """
import json, sys
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from frameworks.verl.command import command_line
parser = OverridesParser.create()
def read(value):
    config = OmegaConf.create({"x": 0})
    ConfigLoaderImpl._apply_overrides_to_config(parser.parse_overrides(command_line({"x": (value, "")})), config)
    return OmegaConf.to_container(config, resolve=True)["x"]
print(json.dumps([read(value) for value in json.load(sys.stdin)]))
"""
FIXED = ["a b", "it's", 'q"x', "$(touch x)", "a\nb", "${oc.env:HOME}", "\\", "\\\\", "\\'", "a\\", "a\\\n", "\\${x}",
         "\\\\${x}", "$", "${", "{% for m in x %}{{ m.c }}{% endfor %}", "a,b", "[a]", "{a: b}", "a=b", "null", "1",
         "", " ", "#x", "é\u2028", "m$$${x}'\\'", ["a'b", "${c}"], {"k": "a\\'b"}]  # fmt: skip


def test_hydra_reads_every_text_as_it_was() -> None:
    """Paths may hold spaces, quotes, and what Hydra and OmegaConf would replace."""
    drawn = random.Random(0)
    values = [*FIXED, *("".join(drawn.choices("\\\\\\'${}ab \n\"(),:=[]", k=drawn.randint(0, 9))) for _ in range(2000))]
    done = subprocess.run(
        [warm_python("verl"), "-c", HYDRA], input=json.dumps(values), capture_output=True, text=True, cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == values
