"""What a translation says of each setting is true: in a line, in a list, or in the first block."""

from __future__ import annotations

from pathlib import Path

import pytest

from frameworks import command_parser
from tests.translated_pages import printed_page
from tests.user_errors import refused
from translate.__main__ import framework_of_text
from translate.settings_of_text import settings_of_text

OPENRLHF = (
    "python3 -m openrlhf.cli.train_ppo_ray --rollout.n_samples_per_prompt 8 --algo.advantage.estimator group_norm "
    "--actor.num_gpus_per_node 8 --vllm.num_engines 8 --train.colocate_all "
)
VERL = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=4 "
TRL = "trl grpo --num_generations 8 --per_device_train_batch_size 8 --model_name_or_path m --dataset_name d "
NO_INPUT = "The text names no"


def list_with(page: str, setting: str) -> str:
    """The title of the list that has a setting, without its count; empty where a line has it."""
    title = ""
    for line in page.split("\n"):
        if line.startswith("# ") and not line.startswith("#   "):
            title = line[2:].rpartition(":")[0]
        elif line.startswith(f"#   {setting}"):
            return title
    return ""


@pytest.mark.parametrize("target", ["trl", "verl", "openrlhf"])
@pytest.mark.parametrize(
    "names", ["--pretrain m --prompt_data d", "--actor.model_name_or_path m --data.prompt_dataset d"]
)
def test_a_model_and_a_data_set_are_named_under_any_release_s_names(names: str, target: str) -> None:
    assert NO_INPUT not in printed_page(OPENRLHF + names, "openrlhf", target)
    assert NO_INPUT in printed_page(OPENRLHF + names.partition(" --")[0], "openrlhf", target)


@pytest.mark.parametrize("name", ["prompt_data", "data.prompt_dataset"])
def test_data_sets_of_a_comma_list_are_several(name: str) -> None:
    text = f"{OPENRLHF}--{name} a.jsonl,b.jsonl"
    page = printed_page(text, "openrlhf", "verl")
    settings = settings_of_text(command_parser.load("verl"), page, Path(), {}, None)
    assert settings["data.train_files"] == ["a.jsonl", "b.jsonl"]
    assert list_with(printed_page(text, "openrlhf", "trl"), name) == "Cannot be expressed"
    assert "--data.prompt_dataset a.jsonl,b.jsonl" in printed_page(text, "openrlhf", "openrlhf")


@pytest.mark.parametrize("target", ["trl", "verl"])
def test_a_limit_on_prompt_and_completion_together_is_none_on_the_completion(target: str) -> None:
    page = printed_page(OPENRLHF + "--data.max_len 2048", "openrlhf", target)
    assert list_with(page, "data.max_len=2048") == "Cannot be expressed"
    page = printed_page(OPENRLHF + "--data.max_len 2048 --rollout.max_new_tokens 1024", "openrlhf", "verl")
    assert list_with(page, "data.max_len=2048") == ""


@pytest.mark.parametrize("key", ["True", "{wandb_token}", "abc"])
def test_an_option_that_is_no_switch_keeps_its_word(key: str) -> None:
    page = printed_page(f"{OPENRLHF}--use_wandb {key} --wandb_project p", "openrlhf", "openrlhf")
    assert f"--logger.wandb.key {key!r} ".replace("'", "") in page.replace("'", "")


@pytest.mark.parametrize(("source", "name"), [("openrlhf", "{your_dataset}"), ("openrlhf", "{a}/{b}.jsonl")])
def test_a_placeholder_in_braces_remains_text(source: str, name: str) -> None:
    page = printed_page(f"{OPENRLHF}--data.prompt_dataset {name}", source, "trl")
    assert f"--dataset_name '{name}'" in page


@pytest.mark.parametrize(("epochs", "is_whole"), [("0.5", False), ("2.5", False), ("2.0", True), ("3", True)])
@pytest.mark.parametrize("target", ["verl", "openrlhf"])
def test_a_part_of_a_pass_is_no_whole_number_of_passes(epochs: str, is_whole: bool, target: str) -> None:
    page = printed_page(f"{TRL}--num_train_epochs {epochs}", "trl", target)
    assert (list_with(page, "num_train_epochs") == "") == is_whole


@pytest.mark.parametrize(
    "command", ["mapfile -t A < <(python3 f.py)", "readarray -t A < f.txt", "read -r -a A < f.txt"]
)
def test_an_array_that_nobody_knows_is_taken_from_the_reader(command: str) -> None:
    script = f'{command}\n{VERL}"${{A[@]}}"'
    with refused("unknown-settings", variables=["A"]):
        printed_page(script, "verl", "trl")
    assert "--temperature 0.5" in printed_page(script, "verl", "trl", "A=actor_rollout_ref.rollout.temperature=0.5")
    assert "--temperature" not in printed_page(script, "verl", "trl", "A=")


def test_the_output_of_a_command_is_left_open_under_the_name_of_its_variable() -> None:
    script = f'R="$(cd "$(dirname "$0")" && pwd)"\n{VERL}actor_rollout_ref.model.path="$R/m" data.train_files=$(date)/d'
    page = printed_page(script, "verl", "trl")
    assert '--model_name_or_path "$R/m"' in page and "Left open by the text: $R, $(date)." in page
    assert "--model_name_or_path /a/m" in printed_page(script, "verl", "trl", "R=/a")


@pytest.mark.parametrize(
    ("setting", "title"),
    [
        ("actor_rollout_ref.actor.optim.lr_decay_style=cosine", "Cannot be expressed"),
        ("actor_rollout_ref.actor.optim.lr_decay_steps=1000", "Cannot be expressed"),
        (
            "actor_rollout_ref.actor.megatron.use_distributed_optimizer=True",
            "Concerns the source's machine, files and logs alone",
        ),
        ("actor_rollout_ref.actor.policy_loss.loss_mode=vanilla", "The same by default, and left out"),
        ("actor_rollout_ref.actor.clip_ratio_c=1000000000.0", "The same by default, and left out"),
        ("algorithm.adv_estimator=grpo", ""),
    ],
)
def test_what_becomes_of_a_setting_of_verl(setting: str, title: str) -> None:
    assert list_with(printed_page(VERL + setting, "verl", "openrlhf"), setting) == title


def test_a_bound_beside_two_has_no_effect() -> None:
    page = printed_page(OPENRLHF + "--actor.eps_clip 0.1 --actor.eps_clip_low_high 0.2 0.3", "openrlhf", "trl")
    assert list_with(page, "actor.eps_clip=") == "The same by default, and left out"


@pytest.mark.parametrize("default", ["${MODEL:-}", "${MODEL-}", "${1:-}"])
def test_a_script_that_ends_where_a_variable_is_empty_says_which(default: str) -> None:
    name = default.strip("${}:-")
    script = f'M={default}\nif [ -z "$M" ]; then exit 1; fi\n{VERL}actor_rollout_ref.model.path=$M'
    with refused("ends-before-training", variables=[name]):
        printed_page(script, "verl", "trl")
    assert "--model_name_or_path x" in printed_page(script, "verl", "trl", f"{name}=x")


@pytest.mark.parametrize("line", ["python3 patch.py --target a/main_ppo.py", "python3 patch.py a/trainer/main_ppo.py"])
def test_a_file_that_is_another_script_s_argument_starts_nothing(line: str) -> None:
    assert "--num_generations 4" in printed_page(f"{line}\n{VERL}", "verl", "trl")
    with refused("no-command"):
        printed_page(line, "verl", "trl")


@pytest.mark.parametrize(
    "line",
    ["python3 run.py -- python3 main_ppo.py", "python3 start.py main_ppo.py", "python3 start.py --script main_ppo.py"],
)
def test_a_script_may_start_another(line: str) -> None:
    settings = VERL.partition("main_ppo ")[2]
    assert "--num_generations 4" in printed_page(f"{line} {settings}", "verl", "trl")


def test_of_data_sets_that_cannot_be_expressed_nothing_is_stated() -> None:
    page = printed_page(VERL + "data.train_files=[a,b]", "verl", "trl")
    assert list_with(page, "data.train_files") == "Cannot be expressed" and "--dataset_name" not in page


@pytest.mark.parametrize(
    "line",
    ["conda activate grpo", "source activate grpo", "ray start --temp-dir /tmp/grpo", "tmux new-session -s grpo",
     "tensorboard --logdir logs/grpo &", "mkdir -p outputs/grpo", "cd examples/grpo", "export RUN=my.grpo",
     "conda run -n grpo python prepare.py --out grpo", "srun --job-name grpo hostname"],
)  # fmt: skip
def test_an_environment_or_folder_named_like_a_training_is_none(line: str) -> None:
    text = f"{line}\n{VERL} actor_rollout_ref.actor.optim.lr=3e-6"
    assert framework_of_text(text) == "verl"
    assert "--learning_rate 3e-06" in printed_page(text, "verl", "trl")
    settings = settings_of_text(command_parser.load("trl"), f"{line}\n{TRL}", Path(), {}, None)
    assert settings["num_generations"] == 8


@pytest.mark.parametrize(
    "line", ["loss_type: grpo", "output_dir: outputs/grpo", "run_name: grpo", "hub_model_id: me/grpo",
             "system_prompt: it's so", "system_prompt: |\n  it's\n  so"],
)  # fmt: skip
def test_a_configuration_is_read_whole_whatever_its_values_look_like(line: str) -> None:
    text = f"model_name_or_path: m\nlearning_rate: 3.0e-6\nbeta: 0.04\nnum_generations: 4\n{line}\n"
    settings = settings_of_text(command_parser.load("trl"), text, Path(), {}, None)
    assert settings["learning_rate"] == 3e-6 and settings["beta"] == 0.04 and len(settings) == 5
