"""What is known of accelerate and of TRL's own configurations of it is so in the pinned releases."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

import pytest

from contracts.run_file import ROOT
from frameworks.trl.launchers import is_of_accelerate, launch_words, settings_of_launcher
from system.yaml_files import read_yaml
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]

STARTS = [
    "deepspeed --num_gpus 4 --master_port 29501 --save_pid", "deepspeed --include localhost:0,1",
    "torchrun --nproc_per_node=4 --nnodes=2 --node_rank 0 --master_addr h --master_port 29500 --tee 3 --log_dir logs",
    "torchrun --nnodes 2 --rdzv_backend c10d --rdzv_endpoint h:29 --rdzv_id 7 --max_restarts 0",
    "python -u -m torch.distributed.run --nproc_per_node 4 -m", "uv run --with trl --with vllm",
    "accelerate launch --multi_gpu --zero3_init_flag true -q",
]  # fmt: skip
IN_ENVIRONMENT = """
import importlib.resources, json, sys, yaml
from accelerate.commands.launch import launch_command_parser
parser = launch_command_parser()
options = [option[2:] for action in parser._actions for option in action.option_strings if option[:2] == "--"]
folder = importlib.resources.files("trl.accelerate_configs")
packaged = {file.name: yaml.safe_load(file.read_text()) for file in folder.iterdir() if file.name.endswith(".yaml")}
started = [vars(parser.parse_args(words)) for words in json.loads(sys.argv[1])]
print(json.dumps({"options": options, "packaged": packaged, "started": started}, default=str))
"""


@pytest.fixture(scope="module")
def installed() -> dict[str, Any]:
    launches = [launch_words(settings_of_launcher(shlex.split(start), [], {}, {}, ROOT))[2:] for start in STARTS]
    done = subprocess.run(
        [warm_python("trl"), "-c", IN_ENVIRONMENT, json.dumps(launches)], capture_output=True, text=True, check=True
    )
    content: dict[str, Any] = json.loads(done.stdout.strip().split("\n")[-1])
    return content


def test_the_options_of_accelerate_are_known(installed: dict[str, Any]) -> None:
    underscored = {name for name in installed["options"] if "-" not in name}
    assert not {name for name in underscored if not is_of_accelerate(name)} - {"help", "module", "no_python"}
    names = read_yaml(ROOT / "frameworks" / "trl" / "launchers.yaml")["accelerate"]
    assert not {name for name in names if not name.endswith("*")} - underscored


def test_the_configurations_in_trls_package_are_known(installed: dict[str, Any]) -> None:
    known = read_yaml(ROOT / "frameworks" / "trl" / "launchers.yaml")["packaged"]
    assert {f"{name}.yaml" for name in known} == installed["packaged"].keys()
    for name, content in known.items():
        whole = installed["packaged"][f"{name}.yaml"]
        stage = {key: {"zero_stage": value["zero_stage"]} for key, value in whole.items() if key == "deepspeed_config"}
        assert content == {key: whole[key] for key in content} | stage, name


def test_accelerate_starts_trls_script_with_what_is_printed(installed: dict[str, Any]) -> None:
    for start, parsed in zip(STARTS, installed["started"], strict=True):
        assert (parsed["module"], parsed["training_script"], parsed["training_script_args"]) == (
            True, "trl.scripts.grpo", [],
        ), start  # fmt: skip
    assert [parsed["num_processes"] for parsed in installed["started"]] == [4, 2, 8, 2, 4, None, None]
