"""Checkpoints as the real libraries write them become model folders with the same weights."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from contracts import model_folder, provenance
from contracts.run_file import ROOT
from tests import needs
from tests.contract.tiny_model import copy_model
from tests.user_errors import printed_code
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]
SCRIPT = ROOT / "tests" / "contract" / "make_trainer_checkpoints.py"
LARGEST = """
import json, sys
from safetensors.torch import load_file
a, b = (load_file(f"{folder}/model.safetensors") for folder in sys.argv[1:])
names = (set(a) | set(b)) - {"lm_head.weight"}
print(json.dumps(max((a[name].float() - b[name].float()).abs().max().item() for name in names)))
"""

# By name: what is written over adapter_config.json, and how the names of the tensors and the file's bytes change.
ADAPTERS = {
    "whole": ({}, "names", 0, ""),
    "prefix": ({}, "['module.' + name for name in names]", 0, "adapter-mismatch"),
    "other prefix": ({}, "[name.replace('base_model.model.', '', 1) for name in names]", 0, "adapter-mismatch"),
    "one layer": ({}, "[name for name in names if 'layers.0' in name]", 0, "adapter-mismatch"),
    "one more": ({}, "[*names, names[0] + '.more']", 0, "adapter-mismatch"),
    "empty": ({}, "[]", 0, "adapter-mismatch"),
    "other targets": ({"target_modules": ["q_proj"]}, "names", 0, "adapter-mismatch"),
    "other rank": ({"r": 2}, "names", 0, "other-base-model"),
    "cut": ({}, "names", 9, "damaged-model"),
    "no base": ({"base_model_name_or_path": 3}, "names", 0, "missing-base"),
    "method": ({"peft_type": "PROMPT_TUNING"}, "names", 0, "unknown-adapter"),
    "list": ([], "names", 0, "damaged-model"),
}
CONVERT_ADAPTERS = """
import json, shutil, sys
from pathlib import Path
from safetensors.torch import load_file, save_file
from frameworks.convert_checkpoint import convert
from system.errors import UserError
whole, output, codes = Path(sys.argv[1]), Path(sys.argv[2]), {}
for name, (settings, keys, cut, _) in json.loads(sys.argv[3]).items():
    adapter = Path(shutil.copytree(whole, output / name, ignore=shutil.ignore_patterns("expected")))
    file, weights = adapter / "adapter_config.json", adapter / "adapter_model.safetensors"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings if isinstance(settings, dict) else settings))
    tensors = load_file(weights)
    chosen = eval(keys, {"names": names}) if (names := sorted(tensors)) else []
    values = [tensors[names[min(index, len(names) - 1)]].clone() for index in range(len(chosen))]
    save_file(dict(zip(chosen, values)), weights, {"format": "pt"})
    weights.write_bytes(weights.read_bytes()[cut:])
    codes[name] = ""
    try:
        convert(adapter, output / (name + "-model"))
    except UserError as error:
        codes[name] = error.code
print(json.dumps(codes))
"""

LAYERS = """
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from contracts import model_dimensions
sizes = dict.fromkeys(("vocab_size", "hidden_size", "intermediate_size", "head_dim"), 64)
for kind, layer in model_dimensions.ALIKE.items():
    config = AutoConfig.for_model(kind, **sizes, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1,
        pad_token_id=0)
    with torch.device("meta"):
        tensors = set(AutoModelForCausalLM.from_config(config).state_dict())
    named = {*model_dimensions.AROUND_LAYERS, "lm_head.weight", *(f"model.layers.0.{name}" for name in layer)}
    assert tensors == named, (kind, tensors ^ named)
    assert bool(config.tie_word_embeddings) == (kind in model_dimensions.TIED), kind
"""


def python(name: str, *arguments: str | Path) -> str:
    done = subprocess.run([warm_python(name), *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@cache
def saved(kind: str, framework: str) -> tuple[Path, Path]:
    """A model, and what a trainer's library saves of it."""
    whole = Path(tempfile.mkdtemp(prefix="saved-"))
    atexit.register(shutil.rmtree, whole, ignore_errors=True)
    model, folder = copy_model(whole / "model", environment="trl"), whole / "saved"
    processes = [] if kind == "adapter" else ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
    python(framework, *processes, SCRIPT, kind, model, folder)
    return model, folder


@pytest.mark.parametrize(
    ("kind", "framework", "named", "rounding"),
    [
        ("adapter", "trl", "", 0.0), ("fsdp1-sharded", "trl", "", 0.0),
        pytest.param("fsdp2-sharded", "trl", "pytorch_model_fsdp_0", 0.0, marks=pytest.mark.long),
        pytest.param("fsdp2-full", "trl", "", 0.0, marks=pytest.mark.long),
        ("verl_shards", "verl", "", 0.01),  # verl: bfloat16
        pytest.param("verl_lora", "verl", "actor", 0.01, marks=pytest.mark.long),
        pytest.param("verl_shards", "verl", "actor/huggingface", 0.01, marks=pytest.mark.long),
        ("zero2", "openrlhf", "_actor", 0.0),
        pytest.param("zero3", "openrlhf", "_actor/global_step10", 0.0, marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_the_weights_are_those_that_were_saved(
    kind: str, framework: str, named: str, rounding: float, tmp_path: Path
) -> None:
    needs.skip_without(framework)
    model, folder = saved(kind, framework)
    command = ["-m", "frameworks.convert_checkpoint", folder / named, "--output", tmp_path / "whole"]
    if framework == "openrlhf":
        refusal = subprocess.run([warm_python(framework), *command], cwd=ROOT, capture_output=True, text=True)
        assert refusal.returncode == 1 and printed_code(refusal.stderr) == "missing-base"
        command += ["--base", model]
    assert "crosszero evaluate" in python(framework, *command)
    expected = folder / "expected" if kind in ("adapter", "verl_lora") else model
    assert json.loads(python("trl", "-c", LARGEST, tmp_path / "whole", expected)) <= rounding
    record = provenance.read(tmp_path / "whole")
    assert record["sha256"] == model_folder.check(tmp_path / "whole", chat_template=True)
    assert record["converted_from"] == str(folder / named)


def test_the_tensors_of_known_models_are_those_of_transformers() -> None:
    needs.skip_without("trl")
    python("trl", "-c", LAYERS)


def test_adapters_that_do_not_match_are_refused(tmp_path: Path) -> None:
    needs.skip_without("trl")
    _, folder = saved("adapter", "trl")
    codes = python("trl", "-c", CONVERT_ADAPTERS, folder, tmp_path, json.dumps(ADAPTERS))
    assert json.loads(codes) == {name: code for name, (*_, code) in ADAPTERS.items()}


def test_lost_shards_and_other_names_are_refused(tmp_path: Path) -> None:
    """Without its second shard; with the configurations of models that have other tensors than base or checkpoint."""
    needs.skip_without("trl")
    model, folder = saved("fsdp1-sharded", "trl")
    lost = shutil.copytree(folder, tmp_path / "lost")
    (lost / "pytorch_model_fsdp_0" / "__1_0.distcp").unlink()
    config = json.loads((model / "config.json").read_text())
    for kind in ("qwen3", "starcoder2"):  # the tensors of the former are known without transformers
        other = shutil.copytree(model, tmp_path / kind)
        (other / "config.json").write_text(json.dumps(config | {"model_type": kind}))
    whole = Path(shutil.copytree(model, tmp_path / "in_one_file", ignore=shutil.ignore_patterns("*.safetensors*")))
    python("trl", "-c", "import sys, torch; torch.save([1], sys.argv[1])", whole / "pytorch_model_fsdp.bin")
    refused = {
        "lost": "damaged-weights",
        "in_one_file": "damaged-weights",
        f"{folder} --base qwen3": "mixed-model",
        f"{folder} --base starcoder2": "incomplete-model",
    }
    for arguments, code in ((written.split(), code) for written, code in refused.items()):
        command = [warm_python("trl"), "-m", "frameworks.convert_checkpoint", *arguments, "--output", "whole"]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1 and printed_code(done.stderr) == code, done.stderr
