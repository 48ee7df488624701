"""The same key of a run file in three frameworks' own words, and what one of them does not have."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from contracts.run_file import Run, Stage
from frameworks import adapter
from frameworks.run_settings import Refused
from recipes.runs import load_run
from tests.user_errors import refused

RUNS = {"verl": "logicrl/qwen2.5-7b", "trl": "openr1/qwen2.5-1.5b-instruct", "openrlhf": "crosscheck/openrlhf"}
ACTOR, ROLLOUT, MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model"
CORRECTION, OVERLONG = "algorithm.rollout_correction", "reward.reward_kwargs.overlong_buffer_cfg"
IS = "algo.advantage.is_correction"
REFUSED = "refused"  # in place of settings

# Changed keys of a run file, and the settings that verl, TRL and OpenRLHF get for them
SPELLINGS: list[tuple[dict[str, Any], dict[str, Any] | str, dict[str, Any] | str, dict[str, Any] | str]] = [
    ({"rollout.top_k": 50}, {f"{ROLLOUT}.top_k": 50}, {"top_k": 50}, {}),
    (
        {"objective.clip_ratio": 0.2, "objective.clip_ratio_high": 0.28},
        {f"{ACTOR}.clip_ratio_low": 0.2, f"{ACTOR}.clip_ratio_high": 0.28},
        {"epsilon": 0.2, "epsilon_high": 0.28},
        {"actor.eps_clip_low_high": [0.2, 0.28]},
    ),
    (
        {"objective.dual_clip": 3.0}, {f"{ACTOR}.clip_ratio_c": 3.0}, {"delta": 3.0}, {"actor.dual_clip": 3.0},
    ),
    (
        {"objective.policy_loss": "gspo", "objective.loss_aggregation": "completion_mean"},
        {f"{ACTOR}.policy_loss.loss_mode": "gspo"},
        {"importance_sampling_level": "sequence"},
        {"actor.policy_loss_type": "gspo"},
    ),
    (
        {"objective.policy_loss": "cispo", "objective.loss_aggregation": "token_mean",
         "objective.clip_ratio": 1.0, "objective.clip_ratio_high": 4.0},
        {f"{ACTOR}.policy_loss.loss_mode": "cispo", f"{ACTOR}.clip_ratio_high": 4.0},
        {"loss_type": "cispo", "epsilon_high": 5.0},
        REFUSED,
    ),
    (
        {"objective.policy_loss": "cispo", "objective.loss_aggregation": "token_mean", "objective.clip_ratio": 0.3},
        {f"{ACTOR}.policy_loss.loss_mode": "cispo", f"{ACTOR}.clip_ratio_high": 0.3},
        REFUSED,
        REFUSED,
    ),
    (
        {"objective.policy_loss": "sapo", "objective.loss_aggregation": "completion_mean",
         "objective.clip_ratio": None},
        {f"{ACTOR}.policy_loss.loss_mode": "sapo"},
        {"loss_type": "sapo"},
        REFUSED,
    ),
    (
        {"objective.estimator": "rloo", "objective.scale_rewards": None},
        {"algorithm.adv_estimator": "rloo"},
        REFUSED,
        {"algo.advantage.estimator": "rloo"},
    ),
    (
        {"objective.estimator": "reinforce", "objective.scale_rewards": None},
        {"algorithm.adv_estimator": "reinforce_plus_plus"},
        REFUSED,
        {"algo.advantage.estimator": "reinforce"},
    ),
    ({"objective.mask_truncated": True}, REFUSED, {"mask_truncated_completions": True}, REFUSED),
    (
        {"objective.overlong_buffer": 64, "objective.overlong_penalty": 0.5},
        {f"{OVERLONG}.len": 64, f"{OVERLONG}.penalty_factor": 0.5, "reward.reward_manager.name": "dapo"},
        REFUSED,
        {"reward.overlong_buffer_len": 64, "reward.overlong_penalty_factor": 0.5},
    ),
    (
        {"objective.dynamic_sampling": True},
        {"algorithm.filter_groups.enable": True, "algorithm.filter_groups.metric": "reward"},
        REFUSED,
        {"algo.dynamic_filtering_enable": True},
    ),
    (
        {"objective.dynamic_sampling": True, "objective.overlong_buffer": 64},
        {"algorithm.filter_groups.metric": "score", f"{OVERLONG}.len": 64},
        REFUSED,
        {"algo.dynamic_filtering_enable": True, "reward.overlong_buffer_len": 64},
    ),
    (
        {"objective.sampler_correction": "token", "objective.correction_form": "mask", "objective.correction_low": 0.5,
         "objective.correction_high": 2.0, "objective.logits_temperature": None},
        {f"{CORRECTION}.rollout_is": "token", f"{CORRECTION}.rollout_is_threshold": "0.5_2.0"},
        {"vllm_importance_sampling_mode": "token_mask", "vllm_importance_sampling_clip_min": 0.5,
         "vllm_importance_sampling_clip_max": 2.0},
        {f"{IS}_level": "token", f"{IS}_mode": "mask", f"{IS}_threshold": [0.5, 2.0]},
    ),
    (
        {"objective.sampler_correction": "sequence_mean", "objective.correction_low": 0.5,
         "objective.correction_high": 2.0, "objective.logits_temperature": None},
        {f"{CORRECTION}.rollout_rs": "seq_mean_k1", f"{CORRECTION}.rollout_rs_threshold": "0.5_2.0"},
        REFUSED,
        {f"{IS}_level": "seq", f"{IS}_threshold": [0.5, 2.0]},
    ),
    (
        {"objective.loss_aggregation": "max_length_mean", "objective.loss_length": 4096},
        {f"{ACTOR}.loss_agg_mode": "seq-mean-token-sum-norm", f"{ACTOR}.loss_scale_factor": 4096},
        REFUSED,
        REFUSED,
    ),
    (
        {"lora.r": 16, "lora.alpha": 32, "lora.target_modules": ["q_proj", "v_proj"]},
        {f"{MODEL}.lora_rank": 16, f"{MODEL}.lora_alpha": 32, f"{MODEL}.target_modules": ["q_proj", "v_proj"]},
        {"use_peft": True, "lora_r": 16, "lora_alpha": 32, "lora_target_modules": ["q_proj", "v_proj"]},
        REFUSED,
    ),
]  # fmt: skip


def changed(framework: str, changes: dict[str, Any]) -> tuple[Run, Stage]:
    run = load_run(RUNS[framework], "full")
    stage = run.stages[0]
    for key, value in changes.items():
        group, _, name = key.partition(".")
        before = getattr(stage, group)
        after = {**before, name: value} if value is not None else {k: v for k, v in before.items() if k != name}
        stage = dataclasses.replace(stage, **{group: after})
    return dataclasses.replace(run, stages=(stage,)), stage


@pytest.mark.parametrize(("column", "framework"), list(enumerate(("verl", "trl", "openrlhf"), start=1)))
@pytest.mark.parametrize("row", SPELLINGS, ids=[" ".join(row[0]) for row in SPELLINGS])
def test_a_key_is_spelled_as_each_framework_does(row: tuple[Any, ...], column: int, framework: str) -> None:
    expected, speaks = row[column], adapter.load(framework)
    run, stage = changed(framework, row[0])
    if expected == REFUSED:
        with pytest.raises(Refused):
            speaks.stated_settings(run, stage)
        return
    stated = speaks.stated_settings(run, stage)
    assert {name: stated.get(name) for name in expected} == expected


# Changed keys of a run file, the frameworks that refuse them, and the key that they name
CONFLICTS: list[tuple[dict[str, Any], tuple[str, ...], str]] = [
    ({"objective.policy_loss": "sapo", "objective.loss_aggregation": "completion_mean"}, ("verl", "trl"), "clip_ratio"),
    ({"objective.clip_ratio_high": -0.1}, ("verl", "trl", "openrlhf"), "clip_ratio_high"),
    ({"objective.dual_clip": 1.1}, ("verl", "trl", "openrlhf"), "dual_clip"),
    ({"objective.correction_high": 2.0}, ("verl", "trl", "openrlhf"), "correction_high"),
    ({"objective.sampler_correction": "token", "objective.correction_form": "mask", "objective.correction_low": 5.0,
      "objective.correction_high": 0.5}, ("verl", "trl", "openrlhf"), "correction_low"),
    ({"objective.sampler_correction": "token", "objective.correction_form": "mask"}, ("verl",), "correction_form"),
    ({"objective.sampler_correction": "sequence_mean"}, ("verl",), "sampler_correction"),
    ({"objective.sampler_correction": "token", "rollout.engine": "transformers", "objective.logits_temperature": None},
     ("trl",), "sampler_correction"),
    ({"objective.policy_loss": "vespo", "objective.loss_aggregation": None, "objective.clip_ratio": None,
      "objective.sampler_correction": "sequence", "objective.logits_temperature": None},
     ("trl",), "sampler_correction"),
    ({"objective.overlong_buffer": 50_000}, ("verl", "openrlhf"), "overlong_buffer"),
    ({"objective.dynamic_sampling": True, "batch.samples_per_prompt": 1, "batch.samples_per_device": 1,
      "objective.estimator": "reinforce", "objective.scale_rewards": None}, ("verl", "openrlhf"), "dynamic_sampling"),
    ({"objective.gamma": 0.9}, ("verl", "openrlhf"), "gamma"),
    ({"objective.value_clip": 0.2}, ("verl", "openrlhf"), "value_clip"),
    *(({"objective.estimator": name, "objective.scale_rewards": None}, ("verl",), "estimator")
      for name in ("remax", "gdpo", "optimal_token_baseline", "tir_optimal_token_baseline")),
    ({"objective.policy_loss": "dro", "objective.clip_ratio": None}, ("verl",), "policy_loss"),
    ({"objective.policy_loss": "bypass_mode"}, ("verl",), "policy_loss"),
    ({"objective.policy_loss": "bypass_mode", "objective.sampler_correction": "token",
      f"native.{CORRECTION}.bypass_mode": True}, ("verl",), "sampler_correction"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "framework", "key"), [
    (changes, framework, key) for changes, frameworks, key in CONFLICTS for framework in frameworks
])  # fmt: skip
def test_a_key_that_would_have_no_effect_is_refused(changes: dict[str, Any], framework: str, key: str) -> None:
    run, stage = changed(framework, changes)
    with pytest.raises(Refused) as refusal:
        adapter.load(framework).stated_settings(run, stage)
    assert refusal.value.key.rpartition(".")[2] == key


def test_a_loss_that_needs_more_has_it_under_native() -> None:
    beside = {"dro": f"{ACTOR}.policy_loss.dro_beta", "bypass_mode": f"{CORRECTION}.bypass_mode"}
    for loss, name in beside.items():
        changes = {"objective.policy_loss": loss, "objective.clip_ratio": None, f"native.{name}": True}
        run, stage = changed("verl", changes)
        assert adapter.load("verl").stated_settings(run, stage)[f"{ACTOR}.policy_loss.loss_mode"] == loss


def test_a_clip_range_of_0_upwards_is_stated() -> None:
    run, stage = changed("openrlhf", {"objective.clip_ratio_high": 0})
    assert adapter.load("openrlhf").stated_settings(run, stage)["actor.eps_clip_low_high"] == [0.2, 0]


def test_one_completion_per_prompt_has_no_group() -> None:
    for framework in ("verl", "trl", "openrlhf"):
        run, stage = changed(framework, {"batch.samples_per_prompt": 1})
        with refused("too-few-samples", key="batch.samples_per_prompt"):
            adapter.load(framework).stated_settings(run, stage)
