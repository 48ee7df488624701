"""A training command of one framework in the settings of another: values, units, and nothing is dropped silently."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from contracts.run_file import validate
from envs.build import lock_file
from frameworks import command_parser
from frameworks.adapter import frameworks_with
from recipes.runs import load_run
from system.errors import UserError
from tests.budgets import examples
from tests.translated_pages import everything_printed, printed_page
from tests.user_errors import refused
from translate.__main__ import framework_of_text
from translate.settings_of_text import settings_of_text
from translate.translation import Translation, read_settings, translate_settings

CASES = Path(__file__).with_name("cases") / "translate"
FRAMEWORKS = frameworks_with("command_parser")
PAIRS = list(itertools.permutations(FRAMEWORKS, 2))


def command(framework: str) -> dict[str, Any]:
    parser = command_parser.load(framework)
    return settings_of_text(parser, (CASES / f"{framework}.sh").read_text(), CASES, {}, None)


def translated(
    source: str, target: str, settings_of_source: dict[str, Any]
) -> tuple[Translation, dict[str, list[str]]]:
    parser = command_parser.load(source)
    reading, labels = read_settings(parser, settings_of_source)
    return translate_settings(parser, command_parser.load(target), reading, labels)[0], labels


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), PAIRS)
@given(st.dictionaries(st.from_regex(r"[a-z]{3,9}_[a-z]{3,9}", fullmatch=True), st.integers(2, 99), max_size=4))
@examples("costly")
def test_settings_that_no_table_knows_are_listed(source: str, target: str, unknown: dict[str, int]) -> None:
    translation, labels = translated(source, target, command(source) | unknown)
    printed = everything_printed(translation)
    assert not [text for texts in labels.values() for text in texts if text not in printed]


def lines(source: str, target: str) -> dict[str, Any]:
    return {line.setting: line.value for line in translated(source, target, command(source))[0].lines}


def test_verl_counts_prompts_and_trl_completions_of_a_process() -> None:
    flags = lines("verl", "trl")  # 64 and 32 prompts of 8 on 4 GPUs, 16 completions at once over all of them
    assert (flags["per_device_train_batch_size"], flags["gradient_accumulation_steps"]) == (4, 16)
    assert flags["steps_per_generation"] == 32 and flags["max_completion_length"] == 1024
    assert (flags["learning_rate"], flags["beta"], flags["epsilon_high"]) == (2e-6, 0.001, 0.28)
    assert flags["lr_scheduler_type"] == "constant" and flags["weight_decay"] == 0.01  # verl's defaults, not TRL's
    assert flags["save_steps"] == 40 and flags["num_train_epochs"] == 5  # TRL counts updates, of which a step has two


def test_trl_to_verl_keeps_the_update_although_the_gpus_divide_otherwise() -> None:
    overrides = lines("trl", "verl")
    assert (
        overrides["actor_rollout_ref.actor.ppo_mini_batch_size"] == 128
        and overrides["actor_rollout_ref.rollout.n"] == 7
    )
    assert overrides["algorithm.adv_estimator"] == "grpo" and overrides["actor_rollout_ref.actor.use_kl_loss"] is True
    completions = 128 * 7
    at_once = overrides["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"] * overrides["trainer.n_gpus_per_node"]
    assert completions % at_once == 0
    assert overrides["actor_rollout_ref.actor.clip_ratio_c"] > 1e8  # verl would bound ratios at 3


def test_a_batch_that_does_not_divide_gets_fewer_gpus_and_says_so() -> None:
    one_completion = command("trl") | {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 1}
    overrides = {
        line.setting: line for line in translated("trl", "verl", one_completion)[0].lines
    }  # 7 completions, on 7 GPUs and 1
    assert (
        overrides["trainer.n_gpus_per_node"].value == 7 and "8 in the text" in overrides["trainer.n_gpus_per_node"].note
    )
    assert "actor_rollout_ref.actor.ppo_mini_batch_size" in overrides


def test_openrlhf_counts_prompts_of_a_rollout_and_samples_of_an_update() -> None:
    overrides = lines("openrlhf", "verl")
    assert overrides["data.train_batch_size"] == 256 and overrides["actor_rollout_ref.actor.ppo_mini_batch_size"] == 32
    assert overrides["data.max_prompt_length"] == 1024 and overrides["algorithm.lam"] == 0.95
    assert overrides["algorithm.use_kl_in_reward"] is True and overrides["algorithm.kl_ctrl.kl_coef"] == 0.01
    assert overrides["actor_rollout_ref.actor.clip_ratio_high"] == 0.27
    assert overrides["actor_rollout_ref.actor.optim.lr_scheduler_type"] == "cosine"
    assert overrides["actor_rollout_ref.actor.optim.min_lr_ratio"] == 0.1


def test_what_the_target_does_not_have_is_listed_with_its_own_reason() -> None:
    translation, _ = translated("openrlhf", "trl", command("openrlhf"))
    reasons = dict(translation.cannot)
    assert (
        "no meaning" in reasons["critic_learning_rate=9e-06"]
        and "reward function" in reasons["remote_rm_url=reward.py"]
    )
    assert any("grpo alone" in reason for reason in reasons.values())
    assert any("loss, not reward" in reason for reason in reasons.values())
    translation, _ = translated("trl", "openrlhf", command("trl"))
    assert {"loss_type=bnpo", "mask_truncated_completions=True"} <= {text for text, _ in translation.cannot}
    reasons = dict(translated("verl", "trl", command("verl") | {"algorithm.adv_estimator": "rloo"})[0].cannot)
    assert "no meaning for TRL" in reasons["algorithm.adv_estimator=rloo"]


def test_a_kl_term_that_earlier_releases_of_verl_had_by_default_is_pointed_out() -> None:
    unused = {"algorithm.kl_ctrl.kl_coef": 0.01, "algorithm.adv_estimator": "grpo", "actor_rollout_ref.rollout.n": 4}
    translation, _ = translated("verl", "openrlhf", unused)
    assert "algorithm.use_kl_in_reward=True" in dict(translation.cannot)["algorithm.kl_ctrl.kl_coef=0.01"]
    translation, _ = translated("verl", "openrlhf", unused | {"actor_rollout_ref.actor.use_kl_loss": True})
    assert "algorithm.kl_ctrl.kl_coef=0.01" in dict(translation.same)  # of no effect in any release
    translation, _ = translated("verl", "trl", unused | {"actor_rollout_ref.actor.use_kl_loss": True})
    assert {line.setting: line.value for line in translation.lines}["beta"] == 0.001  # the default of kl_loss_coef


@pytest.mark.parametrize("source", FRAMEWORKS)
def test_a_text_without_model_or_data_is_said_to_name_none(source: str) -> None:
    names = command_parser.load(source).unconverted
    start, dashes = command_parser.load(source).command, "" if source == "verl" else "--"
    joint = "=" if source == "verl" else " "
    for named in itertools.product((True, False), repeat=2):
        stated = [key for key, is_named in zip(("model", "dataset"), named, strict=True) if is_named]
        text = " ".join([start, *(f"{dashes}{names[key]}{joint}somewhere" for key in stated)])
        target = "openrlhf" if source == "verl" else "verl"
        printed = printed_page(text, source, target)
        absent = [names[key] for key in ("model", "dataset") if key not in stated]
        assert (f"({', '.join(absent)}); nor does the result" in printed) == bool(absent)


@pytest.mark.parametrize("source", FRAMEWORKS)
def test_the_framework_is_known_by_what_the_text_starts(source: str) -> None:
    start = command_parser.load(source).command
    others = [command_parser.load(other).command for other in FRAMEWORKS if other != source]
    lines = [*(f"# {other}" for other in others), "NAME=runs/grpo", 'KIND="grpo"', f"bash -c '{start}'", *others]
    assert framework_of_text(start) == framework_of_text("\n".join(lines)) == source
    patterns = "case $1 in\n  grpo) A=1 ;; grpo) A=2;;\n  (grpo)\n  grpo|trl) ;;\nesac"
    assert framework_of_text(f"{patterns}\n{start}") == framework_of_text(f"(cd x && {start})") == source
    with refused("framework-not-recognised"):
        framework_of_text("learning_rate: 1e-6")
    for other, name in (
        ("bash a/b.sh 1", "a/b.sh"),
        ("sbatch -N 2 'b.slurm'", "b.slurm"),
        ("(. a.env; b.sh;)", "b.sh"),
    ):
        with refused("framework-not-recognised", scripts=[name]):
            framework_of_text(f"#!/bin/bash\n# bash old.sh\nX=1\n{other}")
    assert "OpenRLHF" in printed_page("tinyzero/ppo-3b", None, "openrlhf")


def test_names_of_earlier_releases_mean_the_same_as_todays() -> None:
    parser = command_parser.load("openrlhf")
    old = command("openrlhf")
    new = read_settings(parser, old)[0].stated
    assert all("." in name for name in new if name != "prompt_max_len")  # which has no name today
    assert new["actor.adam.lr"] == 5e-7 and read_settings(parser, new)[0].common == read_settings(parser, old)[0].common


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_what_is_printed_can_be_translated_back(source: str, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = printed_page(str(CASES / f"{source}.sh"), source, target)
    parser = command_parser.load(target)
    again = read_settings(parser, settings_of_text(parser, page, Path(), {}, None))[0].common
    first = read_settings(command_parser.load(source), command(source))[0].common
    for key in (
        "batch.prompts_per_step",
        "batch.prompts_per_update",
        "optimizer.learning_rate",
        "objective.clip_ratio",
    ):
        assert again[key] == first[key]


def test_only_what_the_script_leaves_to_a_shell_is_listed_as_open_and_printed_so() -> None:
    text = (
        "python3 -m verl.trainer.main_ppo 'data.val_files=${data.train_files}' 'trainer.experiment_name=for $5' "
        "trainer.project_name=$P"
    )
    page = printed_page(text, "verl", "verl")
    assert "Left open by the text: $P. " in page and "--set 1=" not in page
    assert "trainer.project_name='$P'\"" in page and "for $5'" in page
    assert "--set 1=" in printed_page(f"{text} trainer.default_local_dir=$1", "verl", "verl")


@pytest.mark.parametrize("source", FRAMEWORKS)
def test_a_run_file_made_of_a_command_is_valid_and_trains_the_same(source: str) -> None:
    content = yaml.safe_load(printed_page(str(CASES / f"{source}.sh"), source, "run-file"))
    whole = load_run("crosscheck/trl", "full")
    full = content["full"]
    full |= {"dataset": "x", "steps": 1, "checkpoints": [1], "evaluation": {"protocol": "x", "benchmarks": ["x"]}}
    full["hardware"] |= {"cpus": 1, "memory_gb": 1, "hours": 1}
    validate(
        {**content, "title": "x", "prompt": "x", "rewards": list(whole.rewards), "demo": full}, "run", "the run file"
    )
    first = read_settings(command_parser.load(source), command(source))[0].common
    assert full["optimizer"]["learning_rate"] == first["optimizer.learning_rate"]
    assert full["batch"]["prompts_per_update"] == first["batch.prompts_per_update"]


def test_what_is_the_machine_s_is_not_in_a_run_file() -> None:
    page = printed_page(str(CASES / "openrlhf.sh"), "openrlhf", "run-file")
    assert "KEY" not in str(yaml.safe_load(page)) and "# Not in a run file: use_wandb=KEY" in page


def test_a_run_file_can_be_translated() -> None:
    page = printed_page("crosscheck/trl", "run-file", "verl")
    assert "actor_rollout_ref.actor.ppo_mini_batch_size=128" in page


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_tables_are_of_the_pinned_release(framework: str) -> None:
    _, version = command_parser.load(framework).tables["release"].split()
    assert f"{framework}=={version}" in lock_file(framework, "cpu").read_text().split()


@pytest.mark.parametrize("target", FRAMEWORKS)
@pytest.mark.parametrize("gpus", [1, 3, 5, 6, 7, 12])
@pytest.mark.parametrize(
    ("source", "settings"),
    [
        (
            "verl",
            {"algorithm.adv_estimator": "grpo", "algorithm.use_kl_in_reward": True, "actor_rollout_ref.rollout.n": 4},
        ),
        ("openrlhf", {"advantage_estimator": "group_norm", "n_samples_per_prompt": 8, "colocate_all_models": True}),
    ],
)
def test_every_translation_ends(source: str, target: str, settings: dict[str, Any], gpus: int) -> None:
    name = {"verl": "trainer.n_gpus_per_node", "openrlhf": "actor_num_gpus_per_node"}[source]
    try:
        translation, labels = translated(source, target, settings | {name: gpus})
    except UserError as error:
        assert error.code in ("no-fit", "batch-does-not-divide"), error
    else:
        assert len(labels) == len(settings) + 1 and translation.launcher


CALCULATED = ("save", "clip", "warm", "step", "epoch", "batch", "lora", "max_samples", "gpus", "nodes", "betas")
REFUSALS = (
    "not-a-number",
    "not-a-word",
    "not-a-truth-value",
    "batch-does-not-divide",
    "one-completion-per-prompt",
    "too-few-gpus",
    "no-fit",
)
OF_OTHER_KINDS = [None, -1, "x", "$N", [1, 2], {"a": 1}, True]


@pytest.mark.parametrize("source", FRAMEWORKS)
@given(data=st.data())
@examples("costly")
def test_a_value_of_another_kind_is_refused_or_listed(source: str, data: st.DataObject) -> None:
    """A text for a number, a list for a word: among settings that are read, and those that are calculated with."""
    stated, parser = command(source), command_parser.load(source)
    calculated = [name for name in parser.defaults if any(part in name for part in CALCULATED)]
    name = data.draw(st.sampled_from(sorted({*itertools.chain(*parser.one_to_one.values()), *calculated})))
    value = data.draw(st.sampled_from(OF_OTHER_KINDS))
    try:
        _, labels = translated(source, "verl" if source == "trl" else "trl", stated | {name: value})
    except UserError as error:
        assert error.code in REFUSALS, error
    else:
        assert labels


def test_settings_that_train_something_else_are_never_of_the_machine_alone() -> None:
    settings = {
        "trainer.rejection_sample": True, "actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_dtype": "fp8",
        "actor_rollout_ref.ref.model.path": "x", "actor_rollout_ref.model.custom_chat_template": "x",
        "actor_rollout_ref.rollout.quantization": "fp8", "actor_rollout_ref.actor.fsdp_config.mixed_precision": "bf16",
    }  # fmt: skip
    for target in FRAMEWORKS:
        translation, _ = translated("verl", target, command("verl") | settings)
        listed = {text.split("=")[0] for text, _ in translation.cannot + translation.unknown}
        assert listed >= settings.keys(), target


@pytest.mark.parametrize(("source", "target"), list(itertools.product(FRAMEWORKS, FRAMEWORKS)))
def test_lora_is_translated_with_its_rank_and_scale(source: str, target: str) -> None:
    stated = {
        "verl": {"actor_rollout_ref.model.lora_rank": 24, "actor_rollout_ref.model.lora_alpha": 48},
        "openrlhf": {"lora_rank": 24, "lora_alpha": 48, "advantage_estimator": "group_norm"},
        "trl": {"use_peft": True, "lora_r": 24, "lora_alpha": 48, "lora_dropout": 0.0},
    }
    translation = translated(source, target, command(source) | stated[source])[0]
    values_by_key = {line.key: line.value for line in translation.lines}
    if target == "openrlhf":  # its release cannot sample with an adapter
        assert "lora.r" not in values_by_key and any("lora_r" in text for text, _ in translation.cannot)
        return
    assert (values_by_key["lora.r"], values_by_key["lora.alpha"]) == (24, 48)


GROUPS_OF_THE_MACHINE = {
    "profiler", "checkpoint", "global_profiler", "transfer_queue", "run", "sweep", "trace", "val_kwargs", "prometheus",
    "accelerate", "launcher",
}  # fmt: skip


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_settings_of_the_machine_are_named_one_by_one(framework: str) -> None:
    names, groups = command_parser.load(framework).machine
    assert {group.removesuffix(".").rpartition(".")[2] for group in groups} <= GROUPS_OF_THE_MACHINE
    assert not [name for name in names if "*" in name.removesuffix("*")]


def test_what_is_not_known_is_said_before_anything_else() -> None:
    script = "python main_ppo.py algorithm.adv_estimator=remax actor_rollout_ref.rollout.n=4 trainer.magic=1"
    page = printed_page(script, "verl", "trl").splitlines()
    assert page[:2] == [
        "# Not known to this translator: 1",
        "#   trainer.magic=1: no setting of verl 0.9.1, by this name",
    ]
    assert page[2] == "# Another objective than the text's: 1" and page[3].startswith(
        "#   algorithm.adv_estimator=remax: "
    )
