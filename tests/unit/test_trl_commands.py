"""What a command of TRL says of truth values and numbers, however it is written."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import pytest

from frameworks import command_parser
from tests.user_errors import refused
from translate.__main__ import translated_page
from translate.settings_of_text import settings_of_text
from translate.translation import read_settings

TRL = command_parser.load("trl")
BATCH = "--num_generations 8 --per_device_train_batch_size 8 --gradient_accumulation_steps 4"
OPTIONS = f"--model_name_or_path m --dataset_name d {BATCH}"


def settings(text: str) -> dict[str, Any]:
    return settings_of_text(TRL, text, Path(), {}, None)


def common(text: str) -> dict[str, Any]:
    return read_settings(TRL, settings(text))[0].common


def page(text: str, target: str, gpus: int | None = None) -> str:
    return translated_page(
        argparse.Namespace(
            text=text, source="trl", target=target, variables=[], gpus=gpus, number=None, scale="full", stage=1,
            check=False, release=None,
        )
    )  # fmt: skip


def listed(text: str, title: str) -> str:
    """The block of a page that has a title."""
    block = re.search(rf"^# {title}.*\n((?:#   .*\n?)*)", text, re.MULTILINE)
    assert block, text
    return block[1]


@pytest.mark.parametrize(
    ("words", "value"),
    [*((f"--use_peft {word}", True) for word in ("yes", "True", "t", "Y", "1")), ("--use_peft", True),
     *((f"--use_peft={word}", False) for word in ("no", "FALSE", "f", "n", "0")), ("--use-peft no", False)],
)  # fmt: skip
def test_truth_values_are_read_in_all_of_trls_words(words: str, value: bool) -> None:
    assert settings(f"trl grpo {words}")["use_peft"] is value
    assert ("lora.r" in common(f"trl grpo {OPTIONS} {words}")) is value


def test_every_setting_that_is_on_by_default_can_be_turned_off_by_its_own_flag() -> None:
    on = [name for name, default in TRL.defaults.items() if default is True]
    assert "shuffle_dataset" in on
    for name in on:
        assert settings(f"trl grpo --no_{name} --no-{name.replace('_', '-')}") == {name: False}
        assert f"    --{name} False" in page(f"trl grpo {OPTIONS} --no_{name}", "trl")


def test_a_word_of_another_type_is_refused() -> None:
    for words, code in (("--use_vllm maybe", "not-a-truth-value"), ("--epsilon_high None", "not-a-number")):
        with refused(code):
            page(f"trl grpo {OPTIONS} {words}", "trl")


YAML = """
learning_rate: 1e-6
beta: "1e-3"
num_generations: 8.0
steps_per_generation: "4"
per_device_train_batch_size: 8
use_peft: "no"
use_vllm: n
epsilon_high: null
top_k: null
reward_weights: [0.5, 1]
report_to: [wandb, tensorboard]
generation_kwargs: {temperature: 0.7}
liger_kernel_config: {swiglu: false}
scale_rewards: false
"""


@pytest.mark.parametrize("as_file", [False, True])
def test_yaml_values_are_what_trls_parser_makes_of_them(as_file: bool, tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text(YAML)
    text = f"trl grpo --config {tmp_path / 'grpo.yaml'}" if as_file else YAML
    read = common(text)
    assert (read["optimizer.learning_rate"], read["objective.kl_coefficient"]) == (1e-6, 1e-3)
    assert read["batch.samples_per_prompt"] == 8 and read["batch.prompts_per_step"] == 4
    assert "lora.r" not in read and read["rollout.engine"] == "transformers"
    assert (read["rollout.temperature"], read["objective.scale_rewards"]) == (0.7, "none")
    printed = page(text, "trl")
    assert (
        "--reward_weights 0.5 1\n" in printed
        and "--scale_rewards none" in printed
        and "None" not in printed.split("settings=(")[1]
    )
    for name in ("top_k=None", "report_to=", "liger_kernel_config="):  # which no command can state
        assert name in listed(printed, "Not known to this translator")
