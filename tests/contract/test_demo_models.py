"""The demo models in the trl environment: the tokenizer of all tasks together, saved and loaded again; the training."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from contracts.run_file import ROOT
from envs.build import python
from tests import needs
from tests.warm_python import warm_python

PYTHON = python("trl")
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    needs.environments("trl"),
]

SCRIPT = """
import json, sys, tempfile
import yaml
from pathlib import Path
from transformers import AutoTokenizer
from recipes.demo_model import build, mixture, tokenizer as demo_tokenizer
from tasks import prompts, registry, task_yaml
settings = yaml.safe_load(build.SETTINGS.read_text())
tasks = {name: task_yaml.settings(name) for name in task_yaml.task_names()}
demos = {name: content["demo"] for name, content in tasks.items() if "demo" in content}
rows_of = {name: mixture.rows(name, demo, 60, 0.5, 0) for name, demo in demos.items()}
rows = [row for name in demos for row in rows_of[name]]
phrases = [phrase for name, demo in demos.items() for phrase in registry.get(name).traces.phrases(demo["problems"])]
asked = [prompts.load(name) for demo in demos.values() for name in demo["prompts"]]
texts = [f"{row.question} {row.completion}" for row in rows]
built = demo_tokenizer.build(texts, asked, phrases, settings["vocabulary"])
whole = lambda row: row.prompt.render(row.question, built) + row.completion
rendered = [whole(row) for row in rows]
with tempfile.TemporaryDirectory() as folder:
    built.save_pretrained(folder)
    demo_tokenizer.check_reload(Path(folder), [*rendered, *phrases])
    loaded = AutoTokenizer.from_pretrained(folder)
print(json.dumps({
    "ends": [loaded.eos_token, loaded.pad_token],
    "phrases": [len(loaded(phrase).input_ids) for phrase in phrases],
    "prompts": {prompt.name: len(loaded(prompt.render("", loaded)).input_ids) for prompt in asked},
    "longest": {name: max(len(loaded(whole(row)).input_ids) for row in rows_of[name]) for name in demos},
    "context": settings["architecture"]["max_position_embeddings"],
    "same": all(loaded(text).input_ids == built(text).input_ids for text in rendered),
}))
"""

TRAINING = """
import json, random, torch, yaml
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import Qwen2Config, Qwen2ForCausalLM
from recipes.demo_model import build
from recipes.demo_model.training import Example, train
types, losses = set(), []
class Types(TorchDispatchMode):
    def __torch_dispatch__(self, function, classes, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.is_floating_point():
            types.add(str(result.dtype))
        return result
settings = yaml.safe_load(build.SETTINGS.read_text())
model = Qwen2ForCausalLM(Qwen2Config(vocab_size=32, dtype="float32", **settings["architecture"]))
rng, training = random.Random(0), settings["training"] | {"batch": 4, "warmup_steps": 2}
examples = [Example([start, 3], [start + 1, start + 2, 0]) for start in (rng.randrange(4, 29) for _ in range(80))]
with Types():
    losses = [train(model, examples, 1, training, seed, "one") for seed in (0, 1)]
print(json.dumps({"types": sorted(types), "losses": losses}))
"""

SIZES = """
import json, tempfile
from pathlib import Path
from transformers import AutoModelForCausalLM
from recipes import models
from recipes.demo_model.build import build
by_name = {}
for name in ("demo", "demo-2m", "demo-5m"):
    entry = models.find(name)
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), entry["demo_task"], models.demo_settings(entry), models.architecture(entry), untrained=True)
        model = AutoModelForCausalLM.from_pretrained(folder)
        record = json.loads((Path(folder) / "provenance.json").read_text())
    by_name[name] = [model.num_parameters(), model.config.to_dict(), record["settings"]["architecture"]]
print(json.dumps(by_name, default=str))
"""


def output(script: str) -> dict[str, Any]:
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [warm_python("trl"), "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return results


def test_training_learns_and_no_step_is_in_a_type_that_many_cpus_only_emulate() -> None:
    results = output(TRAINING)
    assert results["types"] == ["torch.float32"]
    assert results["losses"][1] < results["losses"][0]


def test_every_text_comes_back_and_fixed_parts_are_one_token_each() -> None:
    results = output(SCRIPT)
    assert results["ends"] == ["<|end|>", "<|pad|>"] and results["same"]
    assert set(results["phrases"]) == {1}
    assert max(results["prompts"].values()) <= 10, results["prompts"]
    assert results["longest"].pop("game24") <= results["context"]  # its base model is made to run past its limit
    assert max(results["longest"].values()) <= 256, results["longest"]


def test_a_model_has_the_sizes_of_its_entry() -> None:
    by_name = output(SIZES)
    for _, config, recorded in by_name.values():
        assert {key: config[key] for key in recorded} == recorded
    millions = {name: parameters / 1e6 for name, (parameters, *_) in by_name.items()}
    assert millions == {"demo": pytest.approx(0.6, abs=0.2), "demo-2m": pytest.approx(2, abs=0.5),
                        "demo-5m": pytest.approx(5, abs=0.5)}  # fmt: skip
    assert by_name["demo-2m"][1]["num_hidden_layers"] == by_name["demo"][1]["num_hidden_layers"]
