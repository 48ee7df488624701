"""Scripts of earlier releases and estimators: what they meant then, in the settings of today."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from frameworks import command_parser
from tests.translated_pages import printed_page
from tests.user_errors import refused
from translate.settings_of_text import settings_of_text
from translate.translation import translate_settings as translate_settings


@pytest.mark.parametrize("estimator", ["rloo", "remax", "reinforce_plus_plus", "gpg", "grpo_vectorized"])
def test_a_script_in_the_same_framework_keeps_every_setting(estimator: str) -> None:
    stated = [
        f"algorithm.adv_estimator={estimator}", "actor_rollout_ref.model.lora_rank=32", "data.val_files=test.parquet",
        "actor_rollout_ref.rollout.tensor_model_parallel_size=4", "trainer.test_freq=5",
        "actor_rollout_ref.rollout.top_k=50",
    ]  # fmt: skip
    page = printed_page(f"python main_ppo.py {' '.join(stated)} actor_rollout_ref.actor.grad_clip=0.5", "verl", "verl")
    assert all(f"    {setting}" in page for setting in stated) and "actor_rollout_ref.actor.optim.clip_grad=0.5" in page
    old = printed_page(
        "python train_ppo_ray.py --pretrain a --advantage_estimator rloo --lora_rank 8", "openrlhf", "openrlhf"
    )
    assert "--algo.advantage.estimator rloo" in old and "--ds.lora.rank 8" in old


def test_a_value_that_the_release_refuses_is_named_and_left_out() -> None:
    stated = printed_page("python main_ppo.py trainer.nnodes=1 actor_rollout_ref.rollout.mode=sync", "verl", "verl")
    by_default = printed_page("python main_ppo.py trainer.nnodes=1", "verl", "verl", release="0.5.0")
    assert "rollout.mode=sync: since verl 0.7" in stated
    for page in (stated, by_default):
        settings = page[page.index("settings=(") :]
        assert ".rollout.mode" not in settings and "trainer.nnodes=1" in settings


def test_an_earlier_release_s_penalty_manager_and_metric_run_today() -> None:
    old = "python main_dapo.py reward_model.reward_manager=dapo data.max_response_length=64"
    page = printed_page(
        f"{old} reward_model.overlong_buffer.enable=True reward_model.overlong_buffer.len=16 "
        "algorithm.filter_groups.enable=True algorithm.filter_groups.metric=seq_final_reward",
        "verl", "verl",
    )  # fmt: skip
    settings = settings_of_text(command_parser.load("verl"), page, Path(), {}, None)
    assert settings["reward.reward_kwargs.max_resp_len"] == 64
    assert settings["reward.reward_kwargs.overlong_buffer_cfg.log"] is False
    assert settings["algorithm.filter_groups.metric"] == "reward"
    assert "max_resp_len" not in printed_page(old, "verl", "verl")
    page = printed_page("python main_ppo.py reward_model.reward_manager=prime trainer.nnodes=1", "verl", "verl")
    assert "no such reward manager" in page and "reward_manager.name=" not in page


@pytest.mark.parametrize(
    ("text", "source", "releases"),
    [("trl grpo --num_generations 8 --per_device_train_batch_size 8", "trl", ("0.15.0", "0.16.0")),
     ("python train_ppo_ray.py --pretrain a --rollout.n_samples_per_prompt 4", "openrlhf", ("0.6.0", "0.6.2"))],
)  # fmt: skip
def test_a_setting_that_meant_something_else_is_said(text: str, source: str, releases: tuple[str, str]) -> None:
    gpus = 8 if source == "trl" else None
    before, after = (printed_page(text, source, "verl", gpus=gpus, release=release) for release in releases)
    assert "does not divide logits" in before and "does not divide logits" not in after


def test_an_earlier_release_s_engine_prompt_limit_and_correction() -> None:
    text = "trl grpo --num_generations 8 --per_device_train_batch_size 8 --use_vllm --model_name_or_path m"
    pages = {
        release: printed_page(text, "trl", "verl", gpus=8, release=release) for release in ("0.23.0", "0.27.0", "1.9.0")
    }
    levels = {release: re.findall(r"rollout_is=(\w+)", page) for release, page in pages.items()}
    assert levels == {"0.23.0": ["token"], "0.27.0": ["sequence"], "1.9.0": ["sequence"]}
    assert ["9 in the text" in page for page in pages.values()] == [True, True, False]  # one GPU is the sampler's
    assert "--data.max_len 768" in printed_page(text, "trl", "openrlhf", gpus=8, release="0.25.1")


def test_two_limits_become_the_one_that_the_release_has() -> None:
    old = "python train_ppo_ray.py --pretrain a --generate_max_len 8192"
    page = printed_page(f"{old} --prompt_max_len 1024", "openrlhf", "openrlhf")
    assert "--data.max_len 9216" in page and "prompt_max_len=" not in page
    assert "--data.max_len" not in printed_page(old, "openrlhf", "openrlhf")


def test_a_setting_of_an_empty_group_is_added_to_it() -> None:
    stated_words = (
        "actor_rollout_ref.model.override_config.attn_implementation=sdpa reward_model.reward_kwargs.max_resp_len=9"
    )
    page = printed_page(f"python main_ppo.py {stated_words} reward_model.reward_manager=dapo", "verl", "verl")
    assert "    +actor_rollout_ref.model.override_config.attn_implementation=sdpa" in page
    assert "    actor_rollout_ref.rollout.name=vllm" in page  # which the release wants to be said
    assert "    +reward.reward_kwargs.max_resp_len=9" in page and "    reward.reward_manager.name=dapo" in page


def test_settings_of_another_engine_need_it_to_be_chosen() -> None:
    stated = "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 reward_model.megatron.x=1"
    page = printed_page(f"python main_ppo.py {stated}", "verl", "verl")
    assert "    model_engine=megatron" in page and "    actor_rollout_ref.actor.megatron.tensor_model_parallel" in page
    assert "#   reward_model.megatron.x=1: no setting of verl 0.9.1" in page


def test_a_script_means_the_defaults_of_its_own_release() -> None:
    text = "python main_ppo.py algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=8"
    today, then = (printed_page(text, "verl", "verl", release=release) for release in (None, "0.3.1"))
    assert "actor_rollout_ref.actor.entropy_coeff: 0.001 before 0.4.0; 0 today" in today
    assert "    actor_rollout_ref.actor.entropy_coeff=0.001" in then and "algorithm.use_kl_in_reward=true" in then
    assert then == printed_page(text, "verl", "verl", release="2025-05-01")
    in_loss = f"{text} actor_rollout_ref.actor.use_kl_loss=True"  # then there was none in the reward
    assert "use_kl_in_reward" not in printed_page(in_loss, "verl", "verl", release="0.3.1")
    sampled = printed_page("trl grpo --use_vllm true", "trl", "verl", release="0.16.0", gpus=8)
    assert "actor_rollout_ref.rollout.top_k=50" in sampled and "actor_rollout_ref.rollout.temperature=0.9" in sampled


def test_a_choice_of_an_earlier_release_is_todays_settings_wherever_it_stands() -> None:
    stated_words = ["--algo.advantage.is_correction_type icepop", "--algo.advantage.is_correction_enable"]
    for one, other in itertools.permutations(stated_words):
        text = f"python train_ppo_ray.py --advantage_estimator rloo --n_samples_per_prompt 4 {one} {other}"
        page = printed_page(text, "openrlhf", "openrlhf")
        assert "--algo.advantage.is_correction_mode mask" in page and "is_correction_mode clip" not in page
        assert "rollout_is_threshold='\"'\"'0.5_5.0" in printed_page(text, "openrlhf", "verl")


def test_a_bound_that_the_target_has_not_is_listed_and_the_rest_translated() -> None:
    text = "python train_ppo_ray.py --advantage_estimator rloo --n_samples_per_prompt 4 --enable_vllm_is_correction"
    page = printed_page(text, "openrlhf", "verl")
    assert "rollout_is=token" in page and "rollout_is_threshold=5.0" in page
    assert "because lower bound of such weights: verl truncates from above alone" in page


def test_a_warm_up_in_steps_stays_one() -> None:
    text = "python main_ppo.py algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=8 data.train_batch_size=512 "
    page = printed_page(text + "actor_rollout_ref.actor.optim.lr_warmup_steps=10", "verl", "trl")
    assert "--warmup_steps 20" in page  # two updates a step
    assert "policy is not trained in the first steps" in printed_page(text + "trainer.critic_warmup=5", "verl", "trl")


@pytest.mark.parametrize(("estimator", "needs"), [("remax", True), ("gdpo", True), ("rloo", False), ("grpo", False)])
def test_an_estimator_that_the_new_trainer_cannot_compute_needs_the_earlier_one(estimator: str, needs: bool) -> None:
    page = printed_page(f"python3 -m verl.trainer.main_ppo algorithm.adv_estimator={estimator}", "verl", "verl")
    assert ("    trainer.use_v1=false" in page) == needs


def test_null_is_read_as_null_where_it_has_a_meaning_and_asked_about_where_a_number_is_needed() -> None:
    text = "python main_ppo.py algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=8 data.train_batch_size=512 "
    warmup = "actor_rollout_ref.actor.optim.lr_warmup_steps"
    page = printed_page(f"{text} {warmup}=null {warmup}_ratio=0.1 data.max_response_length=null", "verl", "trl")
    assert "--warmup_steps 0.1" in page and "data.max_response_length=None, because others need a value" in page
    for name in ("actor_rollout_ref.rollout.n", "trainer.nnodes", "actor_rollout_ref.actor.optim.betas"):
        with refused("not-a-number"):
            printed_page(f"{text} {name}=null", "verl", "trl")


RECIPE_2026 = """python main_ppo.py algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=16 \\
 data.max_response_length=20480 \\
 actor_rollout_ref.actor.clip_ratio_low=0.2 actor_rollout_ref.actor.clip_ratio_high=0.28 \\
 actor_rollout_ref.rollout.top_k=50 \\
 actor_rollout_ref.actor.policy_loss.loss_mode=gspo algorithm.filter_groups.enable=True \\
 reward_model.reward_manager=dapo reward_model.overlong_buffer.enable=True reward_model.overlong_buffer.len=4096 \\
 algorithm.rollout_correction.rollout_is=token algorithm.rollout_correction.rollout_is_threshold=0.5_2.0"""


def test_the_settings_of_2026_are_translated() -> None:
    openrlhf = printed_page(RECIPE_2026, "verl", "openrlhf")
    for setting in (
        "--actor.eps_clip_low_high 0.2 0.28", "--actor.policy_loss_type gspo", "--algo.dynamic_filtering_enable",
        "--reward.overlong_buffer_len 4096", "with gspo the correction puts the sampler's probabilities",
    ):  # fmt: skip
        assert setting in openrlhf, setting
    of_ppo = printed_page(RECIPE_2026.replace("loss_mode=gspo", "loss_mode=vanilla"), "verl", "openrlhf")
    for setting in ("is_correction_level token", "is_correction_threshold 0.5 2.0"):
        assert f"--algo.advantage.{setting}" in of_ppo, setting
    trl = printed_page(RECIPE_2026, "verl", "trl")
    for setting in (
        "--epsilon_high 0.28", "--top_k 50", "--importance_sampling_level sequence",
        "--vllm_importance_sampling_mode token_mask", "--vllm_importance_sampling_clip_min 0.5",
    ):  # fmt: skip
        assert setting in trl, setting
    again = printed_page(RECIPE_2026, "verl", "run-file")
    for key in ("clip_ratio_high", "policy_loss", "dynamic_sampling", "overlong_buffer", "correction_low", "top_k"):
        assert f"  {key}: " in again
