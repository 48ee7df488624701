"""The text of a training command: which settings it has, and what is refused with a code."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks import command_parser
from frameworks.adapter import frameworks_with
from frameworks.command_parser import value_of_text
from tests.translated_pages import printed_page
from tests.user_errors import refused
from translate.settings_of_text import settings_of_text
from translate.translation import read_settings
from translate.translation import translate_settings as translate_settings

FRAMEWORKS = frameworks_with("command_parser")


VALUES = st.integers(-9, 9) | st.booleans() | st.text("ab c$#'", min_size=1).filter(str.strip)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["data.a", "b.c_d", "e.f.g"]), VALUES, min_size=1), st.data())
def test_settings_come_through_a_script_however_it_is_laid_out(wanted: dict[str, Any], data: st.DataObject) -> None:
    rows, before = list[str](), list[str]()
    for number, (name, value) in enumerate(wanted.items()):
        if isinstance(value, int) and data.draw(st.booleans()):
            before.append(f"V{number}={value}  # a value")
            value = f"${{V{number}}}"
            rows.append(f"{name}={value}")
        else:
            rows.append(f"{name}={shlex.quote(str(value))}")
    joint = data.draw(st.sampled_from([" ", " \\\n    ", "  \\\n"]))
    text = "\n".join(
        ["#!/bin/bash", "set -x", *before, joint.join(["python3 -m verl.trainer.main_ppo", *rows]) + " 2>&1 | tee log"]
    )
    settings_read = settings_of_text(command_parser.load("verl"), text, Path(), {}, None)
    assert settings_read.keys() == wanted.keys()
    for name, value in wanted.items():
        assert settings_read[name] == value or str(settings_read[name]) == str(value_of_text(str(value)))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A=(--x 1 # note\n --y 2)\npython train_ppo_ray.py \"${A[@]}\"", {"x": 1, "y": 2}),
        ("N=${N:-4}; M=$((N * 2 + 1)); python train_ppo_ray.py --x $M", {"x": 9}),
        ("python train_ppo_ray.py --x ${N:-${M:-3}} --y=$UNKNOWN", {"x": 3, "y": "$UNKNOWN"}),
        ("B='c d'; A=1 python train_ppo_ray.py --x $B --y \"$B\" &", {"x": ["c", "d"], "y": "c d", "export A": "1"}),
        ("deepspeed -m openrlhf.cli.train_ppo_ray --x 1e-6 --s --z 1 2", {"x": 1e-6, "s": True, "z": [1, 2]}),
        ("--x 1 --y 2", {"x": 1, "y": 2}),
        ('D=$(cd x; pwd)\npython train_ppo.py --x "$D/a" --y `date; ls`', {"x": "$D/a", "y": "`date; ls`"}),
        ("cd train_ppo\nexport A=1\npython train_ppo.py --x 1", {"x": 1, "export A": "1"}),
        ("python train_ppo_ray.py --x 1 $@ > log", {"x": 1}),
    ],
)  # fmt: skip
def test_scripts_are_read_as_a_shell_would(text: str, wanted: dict[str, Any]) -> None:
    assert settings_of_text(command_parser.load("openrlhf"), text, Path(), {}, None) == wanted


def test_nothing_of_a_text_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    text = f"X=$(touch {mark}); touch {mark}\npython train_ppo_ray.py --x $(touch {mark}) --y `touch {mark}`"
    settings_of_text(command_parser.load("openrlhf"), text, Path(), {}, None)
    assert not mark.exists()


def test_a_configuration_file_and_accelerates_are_found_beside_the_script(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "grpo.yaml").write_text("num_generations: 4\nlearning_rate: 1.0e-06\nbeta: 0.0\n")
    (tmp_path / "zero3.yaml").write_text("num_processes: 8\ndeepspeed_config: {zero_stage: 3}\n")
    script = tmp_path / "scripts" / "train.sh"
    script.parent.mkdir()
    script.write_text("accelerate launch --config_file zero3.yaml src/grpo.py --config recipes/grpo.yaml --beta 0.1\n")
    settings_read = settings_of_text(command_parser.load("trl"), script.read_text(), script.parent, {}, None)
    common = read_settings(command_parser.load("trl"), settings_read)[0].common
    assert (common["batch.prompts_per_update"], common["objective.kl_coefficient"]) == (16, 0.1)
    assert (common["hardware.gpus"], common["hardware.sharding"]) == (8, "zero3")


@pytest.mark.parametrize(
    ("text", "source", "options", "code"),
    [
        ("python train.py --x 1", "verl", {}, "no-command"),
        ("nowhere.sh", "verl", {}, "missing-file"),
        ("python -m verl.trainer.main_ppo a.b='1", "verl", {}, "quote-not-closed"),
        ("python -m verl.trainer.main_ppo trainer.n_gpus_per_node=$N", "verl", {}, "not-a-number"),
        ("python main_ppo.py a.b=1\npython main_ppo.py a.b=2", "verl", {}, "several-commands"),
        ("python main_ppo.py a.b=1", "verl", {"number": 2}, "no-such-number"),
        ("python main_ppo.py a.b=1", "verl", {"gpus": 2}, "needless-option"),
        ("python main_ppo.py a.b=1", "verl", {"variables": ["N"]}, "no-assignment"),
        ("trl grpo --config gone.yaml", "trl", {}, "missing-file"),
        ("trl grpo --config configs/$1.yaml", "trl", {}, "unknown-settings"),
        ("python train_ppo_ray.py --x 1 \\\n# a comment \\\n--y 2", "openrlhf", {}, "command-cut-off"),
        ("python main_ppo.py a.b=1 \\  # a comment\nc.d=2", "verl", {}, "command-cut-off"),
        ("trl grpo --num_generations 8 --per_device_train_batch_size 3", "trl", {}, "batch-does-not-divide"),
        ("python main_ppo.py algorithm.adv_estimator=gae", "verl", {"target": "trl"}, "one-completion-per-prompt"),
        ("crosscheck/trl", "run-file", {"stage": 2}, "no-such-stage"),
        ("python train_ppo_ray.py --algo.advantage.gamma 1,0.99", "openrlhf", {}, "not-a-number"),
        ("python main_ppo.py algorithm.adv_estimator=grpo", "verl", {"target": "trl"}, "one-completion-per-prompt"),
        ("python main_ppo.py a.b=1", "verl", {"release": "yesterday"}, "no-release"),
        ("python main_ppo.py a.b=1", "verl", {"release": "0.0.9"}, "release-too-old"),
    ],
)  # fmt: skip
def test_mistakes_have_codes(text: str, source: str, options: dict[str, Any], code: str) -> None:
    target = options.pop("target", "openrlhf" if source != "openrlhf" else "verl")
    with refused(code):
        printed_page(text, source, target, **options)


def test_a_variable_without_a_value_is_named() -> None:
    with refused("not-a-number", setting="trainer.nnodes", variable="N"):
        printed_page("python -m verl.trainer.main_ppo trainer.nnodes=$N", "verl", "trl")


@pytest.mark.parametrize(
    "before",
    ["conda run -n verl --no-capture-output ", "uv run ", 'eval "$(conda shell.bash hook)"\nconda activate verl\n'],
)
def test_a_program_that_starts_another_may_start_a_training(before: str) -> None:
    command = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=4"
    assert "--num_generations 4" in printed_page(f"{before}{command} data.train_batch_size=64", "verl", "trl")


@pytest.mark.parametrize(
    "before",
    ["pkill -f verl.trainer.main_ppo", "ps aux | grep main_ppo.py", "kill $(pgrep -f main_ppo)", "which main_ppo.py",
     "killall main_ppo.py || true",
     "sed -i s/a/b/ verl/trainer/main_ppo.py", "[ -f main_ppo.py ] && md5sum main_ppo.py"],
)  # fmt: skip
def test_a_program_that_names_a_training_s_file_or_process_is_none(before: str) -> None:
    text = f"{before}\npython3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo"
    assert settings_of_text(command_parser.load("verl"), text, Path(), {}, None) == {"algorithm.adv_estimator": "grpo"}


@pytest.mark.parametrize("text", ["NAME=1; echo hello", "NAME=run1\necho prepare", "A.b", "x=1", "ls --all"])
def test_a_text_without_a_training_is_no_configuration_of_defaults(text: str) -> None:
    for framework in FRAMEWORKS:
        with refused("no-command"):
            settings_of_text(command_parser.load(framework), text, Path(), {}, None)
