"""What a setting means in its own framework decides what becomes of it, also where two frameworks name it alike."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from contracts.run_file import ROOT
from frameworks import command_parser
from frameworks.command_parser import value_of_text
from system.yaml_files import read_yaml
from tests.translated_pages import printed_page
from tests.waiting import WORKFLOW_LIMIT
from translate.settings_of_text import settings_of_text

VERL = (
    "python3 -m verl.trainer.main_ppo data.train_batch_size=64 actor_rollout_ref.actor.ppo_mini_batch_size=64 "
    "trainer.n_gpus_per_node=4 actor_rollout_ref.rollout.n=4 "
)
GROUPS = VERL + "algorithm.adv_estimator=grpo "
OPENRLHF = (
    "python3 -m openrlhf.cli.train_ppo_ray --rollout.batch_size 64 --train.batch_size 64 --actor.num_gpus_per_node 4 "
    "--rollout.n_samples_per_prompt 4 --train.colocate_all "
)
GROUP_NORM = OPENRLHF + "--algo.advantage.estimator group_norm "
TRL = (
    "trl grpo --model_name_or_path m --dataset_name d --num_generations 8 --per_device_train_batch_size 8 "
    "--gradient_accumulation_steps 4 "
)
RLOO = OPENRLHF + "--algo.advantage.estimator rloo "
REINFORCE = OPENRLHF + "--algo.advantage.estimator reinforce "
ACTOR = "actor_rollout_ref.actor"
ROLLOUT_IS = "algorithm.rollout_correction.rollout_is"
ANOTHER = "Another objective than the text's: 1"
WITH_END = "--lr_scheduler_type cosine_with_min_lr --lr_scheduler_kwargs "
OLD = "python3 -m openrlhf.cli.train_ppo_ray --max_norm 0.5 --l2 0.01 --lr_warmup_ratio 0.1 --adam_betas 0.9 0.99 "


def settings_of(printed: str, framework: str) -> dict[str, Any]:
    return settings_of_text(command_parser.load(framework), printed, Path(), {}, None)


@pytest.mark.parametrize(
    ("text", "truth"),
    [("FALSE", False), ("True", True), ("NULL", None), ("None", "None"), ("[null, 1e-6, no]", [None, 1e-6, "no"]),
     ("{a: 1, b: {c: x}}", {"a": 1, "b": {"c": "x"}}), ("'1e-6'", "1e-6"), ("[1", "[1"),
     ("007", "007"), ("1_000", 1000), ("1__0", "1__0"), (".5", 0.5), ("1.", 1.0), ("00.5", "00.5"),
     ("infinity", "infinity"),
     ("-INF", -float("inf")), ("\uff11", "\uff11"), ("", ""), ("'it\\'s'", "it's"), ("'a''b'", "'a''b'"), ('"1"', "1"),
     ("'{{ \\'a\\' }}'", "{{ 'a' }}"),
     ("{a:1,b:{c:x:y},d:[e:f]}", {"a": 1, "b": {"c": "x:y"}, "d": ["e:f"]}), ('{"a":1e-6}', {"a": 1e-6})],
)  # fmt: skip
def test_a_word_is_what_the_framework_s_own_parser_makes_of_it(text: str, truth: Any) -> None:
    assert value_of_text(text) == truth and type(value_of_text(text)) is type(truth)


@pytest.mark.parametrize(
    ("source", "target", "text", "wanted"),
    [
        ("verl", "openrlhf", VERL + f"{ACTOR}.optim.clip_grad=0.5 {ACTOR}.optim.weight_decay=0.1 "
         f"{ACTOR}.optim.betas=[0.8,0.99] {ACTOR}.optim.lr_warmup_steps_ratio=0.1 "
         f"{ACTOR}.optim.lr_scheduler_type=cosine",
         {"actor.max_norm": 0.5, "critic.adam.weight_decay": 0.01, "critic.lr_warmup_ratio": 0.0,
          "critic.lr_scheduler": "constant", "actor.lr_scheduler": "cosine", "critic.adam.betas": [0.9, 0.999]}),
        ("verl", "openrlhf", VERL + f"{ACTOR}.optim.lr_scheduler_type=cosine critic.optim.lr_scheduler_type=cosine "
         f"{ACTOR}.optim.min_lr_ratio=0.2 critic.optim.min_lr_ratio=0.2 "
         "trainer.total_training_steps=100 critic.optim.lr_warmup_steps=20",
         {"actor.lr_scheduler": None, "critic.lr_scheduler": None,
          "actor.min_lr_ratio": 0.2, "critic.min_lr_ratio": 0.2,
          "actor.lr_warmup_ratio": 0.0, "critic.lr_warmup_ratio": 0.2}),
        ("openrlhf", "verl",
         OPENRLHF + "--actor.max_norm 0.5 --actor.lr_warmup_ratio 0.2 --actor.lr_scheduler constant",
         {f"{ACTOR}.optim.clip_grad": 0.5, "critic.optim.clip_grad": None, f"{ACTOR}.optim.lr_warmup_steps_ratio": None,
          "critic.optim.lr_warmup_steps_ratio": 0.03, "critic.optim.lr_scheduler_type": "cosine",
          "critic.optim.min_lr_ratio": 0.1}),
        ("openrlhf", "verl", OLD, {"critic.optim.clip_grad": 0.5, f"{ACTOR}.optim.clip_grad": 0.5,
                                   "critic.optim.lr_warmup_steps_ratio": 0.1}),
        ("openrlhf", "openrlhf", OLD, {"critic.max_norm": 0.5, "critic.adam.weight_decay": 0.01,
                                       "critic.lr_warmup_ratio": 0.1, "critic.adam.betas": [0.9, 0.99]}),
        ("openrlhf", "openrlhf", OLD + "--advantage_estimator rloo", {"actor.max_norm": 0.5, "critic.max_norm": None}),
    ],
)  # fmt: skip
def test_a_critic_keeps_its_own_settings_and_defaults(
    source: str, target: str, text: str, wanted: dict[str, Any]
) -> None:
    printed = settings_of(printed_page(text, source, target), target)
    assert {name: printed.get(name) for name in wanted} == wanted


@pytest.mark.parametrize("bound", ["", "--epsilon_high 0.2", "--epsilon_high 1.0", "--epsilon_high 1.28"])
def test_a_run_file_takes_every_bound_of_cispo(bound: str) -> None:
    printed = printed_page(TRL + f"--loss_type cispo {bound}", "trl", "run-file")
    high = yaml.safe_load(printed)["full"]["objective"]["clip_ratio_high"]
    schema = read_yaml(ROOT / "config/schemas/run.schema.yaml")["$defs"]["objective"]["properties"]["clip_ratio_high"]
    assert high == pytest.approx(float(bound.split()[1] if bound else 0.2) - 1) and high > schema["exclusiveMinimum"]


def test_a_run_file_has_no_place_for_what_a_critic_does_otherwise() -> None:
    printed = printed_page(VERL + f"{ACTOR}.optim.clip_grad=0.5", "verl", "run-file")
    assert "max_grad_norm: 0.5" in printed and "the critic's largest gradient norm: 1.0" in printed


@pytest.mark.parametrize(
    ("source", "target", "text", "wanted", "listed"),
    [
        # verl's gspo, cispo and sapo do not read every bound and mean; OpenRLHF's gspo has one mean.
        ("verl", "trl", GROUPS + f"{ACTOR}.policy_loss.loss_mode=gspo", {"delta": None}, ""),
        ("verl", "trl", GROUPS + f"{ACTOR}.policy_loss.loss_mode=vanilla", {"delta": 3.0}, ""),
        ("verl", "openrlhf", GROUPS + f"{ACTOR}.policy_loss.loss_mode=gspo", {"actor.dual_clip": None},
         "OpenRLHF's gspo has completion_mean"),
        ("verl", "trl",
         GROUPS + f"{ACTOR}.policy_loss.loss_mode=cispo {ACTOR}.clip_ratio_low=0.3 {ACTOR}.clip_ratio_high=0.3",
         {"epsilon": None, "epsilon_high": 1.3}, "TRL's cispo has no lower bound"),
        ("verl", "trl", GROUPS + f"{ACTOR}.policy_loss.loss_mode=sapo {ACTOR}.loss_agg_mode=token-mean",
         {"loss_type": "sapo"}, "it has no effect with sapo"),
        ("trl", "verl", TRL + "--importance_sampling_level sequence --delta 4",
         {f"{ACTOR}.clip_ratio_c": None, f"{ACTOR}.policy_loss.loss_mode": "gspo"}, "verl's gspo has no such bound"),
        ("trl", "verl", TRL + "--loss_type cispo --delta 4 --epsilon_high 3", {f"{ACTOR}.clip_ratio_c": None},
         "delta=4.0, since it has no effect with cispo"),
        ("trl", "openrlhf", TRL + "--importance_sampling_level sequence", {"actor.policy_loss_type": "gspo"},
         "OpenRLHF's gspo has completion_mean"),
        ("openrlhf", "verl", GROUP_NORM + "--actor.policy_loss_type gspo",
         {f"{ACTOR}.loss_agg_mode": "seq-mean-token-mean"}, ""),
        ("openrlhf", "trl", GROUP_NORM + "--actor.policy_loss_type gspo --algo.advantage.is_correction_level token",
         {"loss_type": "grpo", "vllm_importance_sampling_correction": False}, "in the place of the old ones"),
        # Weights that are cut from above alone have no lower bound.
        ("verl", "openrlhf", GROUPS + "algorithm.rollout_correction.rollout_is=token",
         {"algo.advantage.is_correction_threshold": [0.0, 2.0]}, ""),
        ("openrlhf", "verl", OPENRLHF + "--algo.advantage.no_std_norm", {"algorithm.norm_adv_by_std_in_grpo": None},
         "verl always divides the advantages of a critic"),
        ("openrlhf", "trl", GROUP_NORM + "--ds.lora.rank 8 --ds.lora.target_modules q_proj v_proj",
         {"lora_target_modules": ["q_proj", "v_proj"]}, ""),
        ("trl", "openrlhf", TRL + "--use_vllm true --vllm_importance_sampling_mode token_truncate",
         {"algo.advantage.is_correction_threshold": [0.0, 3.0]}, ""),
        # Without a critic the frameworks subtract a KL term in the reward at different places, except in REINFORCE++.
        ("openrlhf", "verl", GROUP_NORM, {"algorithm.use_kl_in_reward": True, "algorithm.kl_ctrl.kl_coef": 0.01},
         "has the group's mean and std already; verl 0.9.1 subtracts the KL term's sum from the reward"),
        ("openrlhf", "verl", RLOO, {"algorithm.adv_estimator": "rloo"}, ANOTHER),
        ("openrlhf", "verl", OPENRLHF + "--algo.advantage.estimator reinforce_baseline", {}, ANOTHER),
        ("openrlhf", "verl", OPENRLHF + "--algo.advantage.estimator dr_grpo", {}, ANOTHER),
        ("verl", "openrlhf", GROUPS + "algorithm.use_kl_in_reward=True", {"algo.kl.init_coef": 0.001}, ANOTHER),
        # REINFORCE++ discounts in both frameworks; OpenRLHF alone can leave its std out, in some estimators.
        ("verl", "openrlhf", VERL + "algorithm.adv_estimator=reinforce_plus_plus algorithm.gamma=0.9",
         {"algo.advantage.gamma": 0.9}, ""),
        ("openrlhf", "verl", REINFORCE + "--algo.advantage.gamma 0.9", {"algorithm.gamma": 0.9}, ""),
        ("openrlhf", "verl", REINFORCE + "--algo.advantage.no_std_norm", {}, "others always divide these advantages"),
        ("openrlhf", "verl", GROUP_NORM + "--algo.advantage.no_std_norm --algo.advantage.gamma 0.9",
         {"algorithm.gamma": None}, "no_std_norm=True, since it has no effect with group_norm"),
        ("openrlhf", "verl", RLOO + "--algo.advantage.gamma 0.9",
         {"algorithm.gamma": None}, "OpenRLHF has 1 with these advantages"),
        # A sampler that works beside the trainer has GPUs of its own.
        ("openrlhf", "verl", GROUP_NORM + "--train.async_enable --vllm.num_engines 4",
         {"trainer.n_gpus_per_node": 8}, ""),
        ("openrlhf", "verl", GROUP_NORM + "--vllm.num_engines 4", {"trainer.n_gpus_per_node": 4}, ""),
        ("openrlhf", "openrlhf", OPENRLHF + "--train.async_enable --vllm.num_engines 2", {"vllm.num_engines": 2}, ""),
        # Without its correction a bound says nothing.
        ("verl", "openrlhf", GROUPS + "algorithm.rollout_correction.rollout_is=sequence "
         "algorithm.rollout_correction.rollout_is_threshold=5",
         {"algo.advantage.is_correction_threshold": None, "algo.advantage.is_correction_mode": None}, "rollout_is"),
        # Steps end a training, whatever the epochs; OpenRLHF counts problems.
        ("verl", "trl", GROUPS + "trainer.total_training_steps=1000 trainer.total_epochs=1", {"max_steps": 1000},
         "verl ends after these epochs, too, if they come first"),
        ("verl", "openrlhf", GROUPS + "trainer.total_training_steps=100 trainer.total_epochs=15",
         {"data.max_samples": 6400, "train.num_episodes": 1}, "otherwise these steps need more episodes"),
        ("verl", "openrlhf", GROUPS + "trainer.total_training_steps=100 data.train_max_samples=640",
         {"data.max_samples": 640, "train.num_episodes": 10}, ""),
        ("verl", "openrlhf", GROUPS + "trainer.total_training_steps=100 data.train_max_samples=1000",
         {"data.max_samples": 6400, "train.num_episodes": 1}, "OpenRLHF ends with a pass"),
        ("trl", "verl", TRL + "--max_steps 100 --num_train_epochs 3",
         {"trainer.total_training_steps": 100, "trainer.total_epochs": 100}, ""),
        # A constant schedule has a warm-up in verl alone, and a bound of 0 means none but in verl.
        ("verl", "trl", GROUPS + f"trainer.total_training_steps=100 {ACTOR}.optim.lr_warmup_steps_ratio=0.1",
         {"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 10}, ""),
        ("openrlhf", "verl", GROUP_NORM + "--actor.lr_scheduler constant --actor.lr_warmup_ratio 0.2",
         {f"{ACTOR}.optim.lr_warmup_steps_ratio": None}, "0.2, since it has no effect with a constant schedule"),
        ("openrlhf", "verl", GROUP_NORM + "--actor.lr_scheduler constant_with_warmup --actor.lr_warmup_ratio 0.2",
         {f"{ACTOR}.optim.lr_warmup_steps_ratio": 0.2}, ""),
        ("trl", "verl", TRL + "--lr_scheduler_type constant --warmup_steps 0.1",
         {f"{ACTOR}.optim.lr_warmup_steps_ratio": None}, "0.1, since it has no effect with a constant schedule"),
        ("trl", "verl", TRL + "--lr_scheduler_type constant_with_warmup --warmup_steps 0.1",
         {f"{ACTOR}.optim.lr_warmup_steps_ratio": 0.1}, ""),
        # Where a schedule ends is a share of the learning rate, or itself one.
        ("trl", "verl", TRL + "--learning_rate 1e-5 " + WITH_END + """'{"min_lr": 1e-7}'""",
         {f"{ACTOR}.optim.min_lr_ratio": 0.01}, "from lr_scheduler_kwargs={'min_lr': 1e-07}, learning_rate=1e-05"),
        ("trl", "openrlhf", TRL + "--learning_rate 1e-5 " + WITH_END + """'{"min_lr": 1e-7}'""",
         {"actor.min_lr_ratio": 0.01}, ""),
        ("trl", "verl", TRL + WITH_END + """'{"min_lr": 5e-7}'""", {f"{ACTOR}.optim.min_lr_ratio": 0.5}, ""),
        ("trl", "verl", TRL + WITH_END + """'{"min_lr_rate": 0.2, "num_cycles": 1}'""",
         {f"{ACTOR}.optim.min_lr_ratio": 0.2}, "what it says of num_cycles is not translated"),
        ("trl", "openrlhf", TRL + WITH_END + """'{"min_lr_rate": 0.2}' --lr_scheduler_type cosine_warmup_with_min_lr""",
         {"actor.lr_scheduler": "cosine_warmup_with_min_lr", "actor.min_lr_ratio": 0.2}, ""),
        ("openrlhf", "trl", GROUP_NORM + "--actor.lr_scheduler cosine_warmup_with_min_lr --actor.min_lr_ratio 0.2",
         {"lr_scheduler_kwargs": {"min_lr_rate": 0.2}}, ""),
        ("openrlhf", "verl", GROUP_NORM + "--actor.lr_scheduler cosine_warmup_with_min_lr --actor.min_lr_ratio 0.2",
         {f"{ACTOR}.optim.min_lr_ratio": None}, "verl has such an end with a cosine schedule alone"),
        ("trl", "verl", TRL + WITH_END + """'{"min_lr": 1}' --lr_scheduler_type constant""",
         {f"{ACTOR}.optim.min_lr_ratio": None}, "it has no effect with constant"),
        ("verl", "openrlhf", GROUPS + f"{ACTOR}.optim.lr_warmup_steps=10", {"actor.lr_warmup_ratio": None},
         "warms up over 0.03 of them where no lr_warmup_ratio is stated"),
        # Two frameworks can take prompts in their order.
        ("verl", "trl", GROUPS + "data.shuffle=False", {"shuffle_dataset": False}, ""),
        ("verl", "trl", GROUPS + "data.shuffle=null", {"shuffle_dataset": False}, ""),
        ("trl", "verl", TRL + "--no_shuffle_dataset", {"data.shuffle": False}, ""),
        ("verl", "openrlhf", GROUPS + "data.shuffle=False", {}, "OpenRLHF always takes prompts in random order"),
        # A loss has its own parameters.
        ("verl", "trl", GROUPS + f"{ACTOR}.policy_loss.loss_mode=sapo {ACTOR}.tau_pos=2.0 {ACTOR}.tau_neg=1.5",
         {"sapo_temperature_pos": 2.0, "sapo_temperature_neg": 1.5}, ""),
        ("trl", "verl", TRL + "--loss_type sapo --sapo_temperature_pos 2 --sapo_temperature_neg 1.05",
         {f"{ACTOR}.tau_pos": 2.0, f"{ACTOR}.tau_neg": None}, "sapo_temperature_neg=1.05, since it is so without it"),
        ("verl", "trl", GROUPS + f"{ACTOR}.tau_pos=2.0", {"sapo_temperature_pos": None},
         "tau_pos=2.0, since it has no effect with another loss than sapo"),
        ("verl", "openrlhf", GROUPS + f"{ACTOR}.policy_loss.loss_mode=sapo {ACTOR}.tau_pos=2.0", {},
         "tau_pos=2.0, because OpenRLHF 0.11.2 has no setting for it"),
        ("trl", "verl", TRL + "--loss_type luspo --importance_sampling_level sequence", {},
         "importance_sampling_level=sequence: policy loss by name: verl has ppo, "),
        # TRL's epsilon_high is cispo's largest ratio itself; verl's clip_ratio_high is that ratio less 1.
        ("trl", "verl", TRL + "--loss_type cispo --epsilon_high 0.28",
         {f"{ACTOR}.clip_ratio_low": 1.0, f"{ACTOR}.clip_ratio_high": -0.72}, ""),
        ("trl", "verl", TRL + "--loss_type cispo --epsilon_high 1.28", {f"{ACTOR}.clip_ratio_high": 0.28}, ""),
        ("trl", "verl", TRL + "--loss_type cispo", {f"{ACTOR}.clip_ratio_high": -0.8}, ""),
        ("verl", "openrlhf", GROUPS + f"{ACTOR}.clip_ratio_high=-0.5", {"actor.eps_clip_low_high": None},
         "ppo would have no gradient where the advantage is positive"),
        # A loss without a clip range.
        ("verl", "trl", GROUPS + f"{ACTOR}.policy_loss.loss_mode=sapo {ACTOR}.clip_ratio_low=0.3",
         {"loss_type": "sapo", "epsilon": None}, "clip_ratio_low=0.3, since it has no effect with sapo"),
        ("trl", "verl", TRL + "--loss_type sapo --epsilon 0.3",
         {f"{ACTOR}.policy_loss.loss_mode": "sapo", f"{ACTOR}.clip_ratio_low": None},
         "epsilon=0.3, since it has no effect with sapo"),
        # Terms of the loss are averaged as it is, or over all tokens.
        ("verl", "trl", GROUPS + f"{ACTOR}.loss_agg_mode=seq-mean-token-sum-norm {ACTOR}.entropy_coeff=0.001",
         {"entropy_coef": 0.001}, "verl 0.9.1 averages it by max_length_mean; TRL 1.16.0 averages it by token_mean"),
        ("verl", "trl", GROUPS + f"{ACTOR}.loss_agg_mode=token-mean {ACTOR}.entropy_coeff=0.001",
         {"entropy_coef": 0.001}, ""),
        ("openrlhf", "verl", GROUP_NORM + "--actor.loss_agg_mode seq-mean-token-mean --algo.kl.use_loss "
         "--algo.kl.init_coef 0.01", {f"{ACTOR}.kl_loss_coef": 0.01}, "OpenRLHF 0.11.2 averages it by token_mean"),
        ("verl", "openrlhf", GROUPS + "algorithm.filter_groups.enable=True", {"algo.dynamic_filtering_enable": True},
         "OpenRLHF 0.11.2 keeps groups whose mean reward is inside"),
        # A step has eight updates here.
        ("trl", "verl", TRL + "--steps_per_generation 32 --max_steps 500 --save_steps 104",
         {"trainer.total_training_steps": 63, "trainer.save_freq": 13}, "max_steps=500, because a step has 8 updates"),
        ("trl", "verl", TRL + "--save_steps 100 --save_strategy no", {"trainer.save_freq": None},
         "no effect with save_strategy no"),
        # The clip range of a loss that is refused is none of the loss in its place.
        ("trl", "openrlhf", TRL + "--loss_type cispo --epsilon_high 5",
         {"actor.eps_clip_low_high": None, "actor.eps_clip": None}, "there actor.eps_clip is 0.2 by default"),
        ("verl", "openrlhf", GROUPS + f"{ACTOR}.policy_loss.loss_mode=clip_cov {ACTOR}.clip_ratio=1.0",
         {"actor.eps_clip": None}, "OpenRLHF has ppo, gspo, not 'clip_cov'"),
        # Where a term is refused, the other framework's default does not train with one of its own.
        ("verl", "openrlhf", GROUPS + f"{ACTOR}.use_kl_loss=True {ACTOR}.kl_loss_coef=0.001 "
         f"{ACTOR}.loss_agg_mode=seq-mean-token-mean", {"algo.kl.init_coef": 0.0}, "this term over all tokens"),
        ("trl", "openrlhf", TRL + "--loss_type grpo --beta 0.04", {"algo.kl.init_coef": 0.0}, "over all tokens"),
        ("trl", "openrlhf", TRL + "--lr_scheduler_type reduce_lr_on_plateau", {"actor.lr_scheduler": None},
         "there actor.lr_scheduler is cosine_with_min_lr"),
        ("openrlhf", "verl", GROUP_NORM + "--algo.advantage.is_correction_level token "
         "--algo.advantage.is_correction_threshold 2", {ROLLOUT_IS: "token", f"{ROLLOUT_IS}_threshold": "1e-09_2"}, ""),
        ("trl", "verl", TRL + "--max_grad_norm 0", {f"{ACTOR}.optim.clip_grad": 1e9}, ""),
        ("verl", "trl", GROUPS + f"{ACTOR}.optim.clip_grad=0", {"max_grad_norm": None}, "leaves nothing of"),
        ("openrlhf", "verl", GROUP_NORM + "--actor.max_norm 0", {f"{ACTOR}.optim.clip_grad": 1e9}, ""),
        # verl reads clip_ratio where the two ends are null.
        ("verl", "trl", GROUPS + f"{ACTOR}.clip_ratio=0.3", {"epsilon": None}, "and it only where those are null"),
        ("verl", "trl", GROUPS + f"{ACTOR}.clip_ratio=0.3 {ACTOR}.clip_ratio_low=null {ACTOR}.clip_ratio_high=null",
         {"epsilon": 0.3, "epsilon_high": None}, ""),
        ("verl", "trl", GROUPS + f"{ACTOR}.clip_ratio_high=0.28", {"epsilon": None, "epsilon_high": 0.28}, ""),
        # Other programs and other reward managers do not do the same.
        ("verl", "trl", GROUPS.replace("verl.trainer", "recipe.one_step_off_policy"), {}, "another program than"),
        ("verl", "openrlhf", GROUPS + "+reward.reward_kwargs.overlong_buffer_cfg='{enable:True,len:40}'",
         {"reward.overlong_buffer_len": None}, "only the reward manager dapo reads it"),
        # What chooses data is not the machine's.
        ("verl", "trl", GROUPS + "data.prompt_key=question data.truncation=error", {}, "question, because data files"),
        ("openrlhf", "verl", GROUP_NORM + "--data.prompt_split half", {}, "half, because it chooses a part"),
        # Hydra: truth values in any case, groups as a whole, settings taken out, values of other settings.
        ("verl", "openrlhf", GROUPS + f"{ACTOR}.use_kl_loss=FALSE algorithm.norm_adv_by_std_in_grpo=FALSE",
         {"algo.kl.init_coef": 0.0, "algo.kl.use_loss": None, "algo.advantage.estimator": "dr_grpo"}, ""),
        ("verl", "openrlhf",
         GROUPS + "reward_model.reward_manager=dapo +reward.reward_kwargs.overlong_buffer_cfg='{enable: True,len: 40}'",
         {"reward.overlong_buffer_len": 40}, ""),
        ("verl", "openrlhf", GROUPS + "~trainer.logger", {}, "~trainer.logger=, because Hydra takes this out"),
        ("verl", "openrlhf", GROUPS + "~data.seed=3", {"train.seed": None}, "~data.seed=3, because Hydra takes this"),
        ("verl", "openrlhf", GROUPS + f"{ACTOR}.optim.weight_decay='${{critic.optim.lr}}' critic.optim.lr=0.2",
         {"actor.adam.weight_decay": 0.2}, ""),
    ],
)  # fmt: skip
def test_a_setting_is_translated_by_what_it_does(
    source: str, target: str, text: str, wanted: dict[str, Any], listed: str
) -> None:
    text_of_page = printed_page(text, source, target)
    printed = settings_of(text_of_page, target)
    assert {name: printed.get(name) for name in wanted} == wanted and listed in text_of_page


def test_what_a_framework_refuses_is_said_without_the_remedy_for_a_run_file() -> None:
    printed = printed_page(GROUPS + f"{ACTOR}.policy_loss.loss_mode=cispo", "verl", "trl")
    assert re.search("because TRL's cispo has no lower bound; there epsilon is 0.2 by default$", printed, re.MULTILINE)


@pytest.mark.parametrize("framework", ["trl", "openrlhf"])
@given(st.floats(max_value=0, allow_infinity=False))
def test_argparse_reads_a_negative_number_however_small(framework: str, number: float) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", type=float)
    parser.add_argument("--many", type=float, nargs="+")
    printed = command_parser.load(framework).as_arguments({"one": (number, ""), "many": ([1.0, number], "")})
    assert parser.parse_args(printed) == argparse.Namespace(one=number, many=[1.0, number])


@pytest.mark.parametrize("framework", ["trl", "openrlhf"])
@pytest.mark.parametrize("text", ["-a", "--a", "-1e-05", "-inf", "- a", ""])
def test_argparse_reads_a_value_that_begins_with_a_dash(framework: str, text: str) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one")
    printed = command_parser.load(framework).as_arguments({"one": (text, "")})
    assert parser.parse_args(printed) == argparse.Namespace(one=text)


@pytest.mark.parametrize(
    "override",
    ["~trainer.logger", "~data.seed=3", "~algorithm.kl_ctrl", "data.seed='${oc.env:SEED,3}'", "x.y.z=$A",
     f"{ACTOR}.kl_loss_coef='${{algorithm.kl_ctrl.kl_coef}}'", "trainer.logger='ck/${trainer.project_name}'"],
)  # fmt: skip
def test_what_hydra_or_a_shell_is_to_fill_in_stays_as_it_is_in_verl(override: str) -> None:
    printed = printed_page(GROUPS + override, "verl", "verl")
    before, after = (settings_of(text, "verl") for text in (GROUPS + override, printed))
    name = next(name for name in before if name not in settings_of(GROUPS, "verl"))
    assert str(after.get(name, "left out")).strip("'") == str(before[name]) or f"{name}={before[name]}: no" in printed


@pytest.mark.parametrize("path", ["$HOME/m", "${HOME}/m"])
def test_a_shell_fills_in_the_variables_of_a_path(path: str) -> None:
    printed = printed_page(GROUPS + f"actor_rollout_ref.model.path={path}", "verl", "verl")
    script = printed.rpartition("\n")[0] + '\nprintf "%s\\n" "${settings[@]}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env={"HOME": "/h"})
    assert "actor_rollout_ref.model.path='/h/m'" in done.stdout.split("\n")


def test_variables_before_the_training_s_name_are_left_to_a_shell() -> None:
    text = f"CUDA_VISIBLE_DEVICES=$GPUS accelerate launch --main_process_port $PORT --num_processes 4 grpo.py {TRL[9:]}"
    printed = printed_page(text, "trl", "trl")
    assert 'export CUDA_VISIBLE_DEVICES="$GPUS"' in printed and '--main_process_port "$PORT"' in printed
    assert "Left open by the text: $PORT, $GPUS. " in printed


@pytest.mark.parametrize("target", ["verl", "openrlhf"])
@pytest.mark.parametrize("release", ["0.5.5", "0.8.0", "0.9.0"])
def test_limits_of_earlier_releases_are_known(target: str, release: str) -> None:
    text = "python3 -m openrlhf.cli.train_ppo_ray --advantage_estimator rloo --n_samples_per_prompt 4"
    printed = settings_of(printed_page(f"{text} --generate_max_len 4096", "openrlhf", target, release=release), target)
    if target == "verl":
        assert (printed["data.max_prompt_length"], printed["data.max_response_length"]) == (1024, 4096)
    else:
        assert (printed["data.max_len"], printed["rollout.max_new_tokens"]) == (5120, 4096)


@pytest.mark.parametrize(("release", "epsilon"), [("0.2", 0.3), ("0.3.0", 0.3), ("0.4.0", None), (None, None)])
def test_a_clip_range_is_that_of_the_release(release: str | None, epsilon: float | None) -> None:
    printed = settings_of(printed_page(GROUPS + f"{ACTOR}.clip_ratio=0.3", "verl", "trl", release=release), "trl")
    assert printed.get("epsilon") == epsilon


@pytest.mark.parametrize("framework", ["trl", "verl", "openrlhf"])
def test_the_pinned_release_is_one_that_a_text_can_be_of(framework: str) -> None:
    pinned = command_parser.load(framework).tables["release"].split()[1]
    text = {"trl": TRL, "verl": GROUPS, "openrlhf": GROUP_NORM}[framework]
    assert f"the default of {framework} {pinned}." in printed_page(text, framework, "verl", release=pinned)


@pytest.mark.slow
def test_a_reader_that_closes_the_output_gets_no_traceback() -> None:
    command = [sys.executable, "-m", "translate", "--from", "verl", "--to", "openrlhf", VERL]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        process.stdout.close()  # before it has written a page
        assert process.stderr.read() == "" and process.wait(timeout=WORKFLOW_LIMIT) == 1
