"""Which folders of trainers are recognised, by the names of their files, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.compare_checkpoints.recognise_side import recognise_side
from contracts import checkpoint_formats, model_folder
from contracts.paths import ResultsFolder
from frameworks.convert_checkpoint import recognised
from tests.user_errors import refused

SAVED = {
    "adapter": ["adapter_config.json", "adapter_model.safetensors"],
    "adapter with a configuration": ["adapter_config.json", "adapter_model.safetensors", "config.json"],
    "verl": ["actor/model_world_size_1_rank_0.pt", "actor/huggingface/config.json", "critic/fsdp_config.json"],
    "openrlhf": ["_actor/latest", "_actor/global_step9/zero_pp_rank_0_mp_rank_00_model_states.pt"],
    "trainer of transformers": ["config.json", "tokenizer.json", "global_step4/mp_rank_00_model_states.pt", "latest"],
    "accelerate": ["pytorch_model_fsdp_0/__0_0.distcp", "pytorch_model_fsdp_0/.metadata"],
    "accelerate, in one file": ["config.json", "tokenizer.json", "pytorch_model_fsdp.bin"],
}  # fmt: skip


def save(folder: Path, files: list[str]) -> Path:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("saved", "named", "framework", "needs_base"),
    [
        ("adapter", "", "trl", False), ("adapter with a configuration", "", "trl", False), ("verl", "", "verl", False),
        ("verl", "actor", "verl", False), ("verl", "actor/huggingface", "verl", False),
        ("openrlhf", "", "openrlhf", True), ("openrlhf", "_actor", "openrlhf", True),
        ("openrlhf", "_actor/global_step9", "openrlhf", True), ("trainer of transformers", "", "openrlhf", False),
        ("accelerate, in one file", "", "trl", False),
        ("accelerate", "", "trl", True), ("accelerate", "pytorch_model_fsdp_0", "trl", True),
    ],
)  # fmt: skip
def test_what_is_no_model_folder_is_told_with_the_command(
    saved: str, named: str, framework: str, needs_base: bool, tmp_path: Path
) -> None:
    folder = save(tmp_path / "my saves", SAVED[saved]) / named
    assert recognised(folder).framework == framework
    base = " --base MODEL, the model that was trained" if needs_base else ""
    remedy = f"make a model of it: crosszero convert '{folder}' --output '{folder}-model'{base}"
    for check in (model_folder.check_files, lambda one: recognise_side(str(one), ResultsFolder(tmp_path / "results"))):
        with refused("unconverted-model", remedy=remedy):
            check(folder)


def test_a_file_of_each_process_is_not_taken_for_weights(tmp_path: Path) -> None:
    folder = save(tmp_path, ["config.json", "tokenizer.json", "pytorch_model_fsdp_rank0.bin"])
    for check in (model_folder.check_files, recognised):
        with refused("unconverted-model", format="fsdp_ranks"):
            check(folder)


def test_the_newest_of_several_steps_is_taken(tmp_path: Path) -> None:
    for step in (9, 10, 8):
        save(tmp_path / "run", [f"global_step{step}/mp_rank_00_model_states.pt"])
    one = checkpoint_formats.recognise(tmp_path / "run")
    assert one and one.folder.name == "global_step10"


def test_whole_weights_beside_a_trainer_s_state_are_used(tmp_path: Path) -> None:
    folder = save(tmp_path, [*SAVED["trainer of transformers"], "model.safetensors"])
    assert checkpoint_formats.recognise(folder) is None
    assert checkpoint_formats.recognise(tmp_path / "nothing") is None


def test_a_folder_above_checkpoints_names_the_newest(tmp_path: Path) -> None:
    assert checkpoint_formats.hint_inside(tmp_path) == ""
    for step in (9, 10):
        (folder := tmp_path / "out" / f"checkpoint-{step}").mkdir(parents=True)
        (folder / "config.json").touch()
        (folder / "model.safetensors").touch()
    assert str(tmp_path / "out" / "checkpoint-10") in checkpoint_formats.hint_inside(tmp_path)
    (tmp_path / "_actor" / "global_step4").mkdir(parents=True)
    (tmp_path / "_actor" / "global_step4" / "mp_rank_00_model_states.pt").touch()
    assert str(tmp_path / "_actor") in checkpoint_formats.hint_inside(tmp_path)
