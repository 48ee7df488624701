"""A real LoRA training of two steps through TRL, and the checkpoint that it is merged into."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from contracts import model_folder
from contracts.run_file import ROOT
from envs.build import folder as environment
from tests.contract import tiny_project
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


def test_two_steps_and_the_merged_checkpoint(tmp_path: Path) -> None:
    if not (environment("trl", "cpu") / ".stamp").is_file():
        pytest.skip("environment trl is not built; make test builds it")
    project = tiny_project.make(
        tmp_path,
        "trl",
        "grpo",
        steps=2,
        checkpoints=[2],
        optimizer={"learning_rate": 1e-2},
        objective={"kl_coefficient": 0.01},
        lora={"r": 4, "alpha": 8, "target_modules": ["all-linear"]},
    )
    training = tiny_project.train(project, framework="trl")
    output, _ = training.communicate(timeout=600)
    assert training.returncode == 0, output
    (native,) = (project / tiny_project.WORK / "native").glob("checkpoint-*")
    assert not list(native.glob("model*.safetensors"))  # the adapter alone was trained and saved

    export = tiny_project.command(project, "export", "--step", "2", "--output", "exported", framework="trl")
    subprocess.run(export, cwd=project, check=True)
    model_folder.check(project / "exported")
    base, exported = (project / "model", project / "exported")
    assert not list(exported.glob("adapter*"))
    for file in base.glob("*.json"):
        assert (exported / file.name).read_text() == file.read_text(), file.name
    assert model_folder.tensor_names(exported / "model.safetensors") == model_folder.tensor_names(
        base / "model.safetensors"
    )

    command = [warm_python("trl"), "-c", COMPARE, native]
    done = subprocess.run(
        command, cwd=project, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)}
    )
    learned, lost = json.loads(done.stdout.strip().split("\n")[-1])
    assert learned > 1e-3 and lost < 1e-4
