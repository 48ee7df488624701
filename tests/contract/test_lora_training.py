"""Real LoRA trainings of two steps through TRL and verl, and the checkpoints that they are merged into."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from contracts import model_folder
from contracts.run_file import ROOT
from system import json_lines
from tests import needs
from tests.contract import tiny_project
from tests.waiting import WORKFLOW_LIMIT
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]

# Logits of the base model, of the base model with the adapter as it was trained, and of the exported checkpoint.
COMPARE = """
import json, sys, torch
from peft import PeftModel
from transformers import AutoModelForCausalLM
load = lambda path: AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
tokens = torch.arange(40).reshape(2, 20)
with torch.no_grad():
    base = load("model")(tokens).logits
    trained = PeftModel.from_pretrained(load("model"), sys.argv[1])(tokens).logits
    exported = load("exported")(tokens).logits
largest = lambda difference: difference.abs().max().item()
print(json.dumps([largest(trained - base), largest(exported - trained)]))
"""


LORA = {"r": 4, "alpha": 8, "target_modules": ["all-linear"]}


def trained(folder: Path, framework: str) -> tuple[Path, Path]:
    """A project whose run has trained for two steps with LoRA, and its exported checkpoint."""
    needs.skip_without(framework)
    project = tiny_project.make(
        folder,
        framework,
        "grpo",
        steps=2,
        checkpoints=[2],
        optimizer={"learning_rate": 1e-2},
        objective={"kl_coefficient": 0.01},
        lora=LORA,
    )
    training = tiny_project.train(project, framework=framework)
    output, _ = training.communicate(timeout=WORKFLOW_LIMIT)
    assert training.returncode == 0, output
    export = tiny_project.command(project, "export", "--step", "2", "--output", "exported", framework=framework)
    subprocess.run(export, cwd=project, check=True)
    base, exported = project / "model", project / "exported"
    model_folder.check(exported)
    assert not list(exported.glob("*adapter*"))
    for file in base.glob("*.json"):
        assert (exported / file.name).read_text() == file.read_text(), file.name
    tensors = (model_folder.tensor_names(folder / "model.safetensors") for folder in (base, exported))
    assert len(set(map(frozenset, tensors))) == 1
    return project, exported


def compared(project: Path, framework: str, code: str, *arguments: str | Path) -> list[float]:
    command = [warm_python(framework), "-c", code, *arguments]
    done = subprocess.run(
        command, cwd=project, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)}
    )
    numbers: list[float] = json.loads(done.stdout.strip().split("\n")[-1])
    return numbers


@pytest.mark.long
def test_two_steps_through_trl_and_the_merged_checkpoint(tmp_path: Path) -> None:
    project, _ = trained(tmp_path, "trl")
    (native,) = (project / tiny_project.WORK / "native").glob("checkpoint-*")
    assert not list(native.glob("model*.safetensors"))  # the adapter alone was trained and saved
    learned, lost = compared(project, "trl", COMPARE, native)
    assert learned > 1e-3 and lost < 1e-4


# Of a layer with an adapter: how far its product of matrices, scaled, is from what the export added to the base model's
# weights, and how large it is; and the largest change of a layer without one.
MERGED = """
import json, sys, torch
from safetensors.torch import load_file
base, exported = load_file("model/model.safetensors"), load_file("exported/model.safetensors")
shard = torch.load(sys.argv[1], weights_only=False, map_location="cpu")
shard = {name: value.to_local() if hasattr(value, "to_local") else value for name, value in shard.items()}
(name,) = [name for name in shard if "layers.0.self_attn.q_proj.lora_A" in name]
product = 8 / 4 * shard[name.replace("lora_A", "lora_B")] @ shard[name]
changes = {name: (exported[name].float() - value.float()).abs() for name, value in base.items()}
(layer,) = [name for name in base if "layers.0.self_attn.q_proj.weight" in name]
largest = lambda tensor: tensor.abs().max().item()
frozen = max(largest(change) for name, change in changes.items() if "proj" not in name)
print(json.dumps([largest(exported[layer] - base[layer] - product), largest(product), frozen]))
"""


@pytest.mark.long
def test_two_steps_through_verl_and_the_merged_checkpoint(tmp_path: Path) -> None:
    project, _ = trained(tmp_path, "verl")
    (actor,) = (project / tiny_project.WORK / "native" / "checkpoints").glob("global_step_2/actor")
    for file in (project / tiny_project.WORK / "native" / "log").iterdir():
        for entry in json_lines.read(file):
            assert entry["data"]["training/rollout_probs_diff_max"] < 2e-4  # the sampler has the adapter, too
            assert entry["data"]["actor/grad_norm"] > 0
    lost, learned, frozen = compared(project, "verl", MERGED, actor / "model_world_size_1_rank_0.pt")
    assert learned > 1e-3 and lost < 0.01 * learned and frozen == 0  # verl.model_merger writes bfloat16
