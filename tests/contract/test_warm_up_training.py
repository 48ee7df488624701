"""A tiny model is warmed up by TRL's own supervised trainer: what it learns from, and what it leaves."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from contracts import model_folder, provenance
from contracts.run_file import ROOT
from tests import needs
from tests.contract.tiny_model import copy_model
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow, needs.environments("trl")]
ENTRY: dict[str, Any] = {
    "model": "smollm2-135m-instruct",
    "task": "arithmetic",
    "prompt": "boxed",
    "problems": {},
    "habits": {"right_order": 1.0, "look_back": 0.0, "in_words": 0.0, "format_kept": 1.0, "slip": 0.0},
    "rows": 20,
    "epochs": 4,
    "batch": 4,
    "learning_rate": 2.0e-2,
    "lora": {"rank": 8, "alpha": 16},
}
# The entry is not in models.yaml; all else is the command.
SCRIPT = """
import json, sys
from pathlib import Path
from recipes import models
base, output, entry = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
read = models.read_yaml
models.read_yaml = lambda file: {**read(file), "mine": {"warm_up": entry}} if file.name == "models.yaml" else read(file)
from frameworks import warm_up
sys.argv = ["warm_up", "mine", "--model", str(base), "--output", str(output)]
warm_up.main()

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from frameworks.trl.warm_up import make_trainer
settings = models.settings("mine")
examples = warm_up.examples(entry, 0, base)[:2]
trainer = make_trainer(base, examples, settings["warm_up"] | settings["training"], "mine", output.parent)
batch = trainer.data_collator(list(trainer.train_dataset))
tokenizer, row = AutoTokenizer.from_pretrained(base), warm_up.warm_up.rows(entry, 0)[0]
before, after = (AutoModelForCausalLM.from_pretrained(folder, dtype="auto") for folder in (base, output))
changed = {name for name, weight in after.state_dict().items() if not torch.equal(weight, before.state_dict()[name])}
print(json.dumps({
    "examples": examples, "tokens": batch["input_ids"].tolist(), "labels": batch["labels"].tolist(),
    "row": [row.prompt.render(row.question, tokenizer), row.completion],
    "texts": [tokenizer.decode(examples[0].prompt), tokenizer.decode(examples[0].completion)],
    "end": tokenizer.eos_token, "type": str(after.dtype), "changed": sorted(changed),
    "trained": sorted({name.split(".")[-3] for name, one in trainer.model.named_parameters() if one.requires_grad}),
}))
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[str], dict[str, Any]]:
    """The base, the warmed-up model, the lines of its training, and what it was trained on."""
    folder = tmp_path_factory.mktemp("warm-up")
    base = copy_model(folder / "base", environment="trl")
    provenance.write(base, quantised="Q4_1", sha256=provenance.sha256(base))
    done = subprocess.run(
        [warm_python("trl"), "-c", SCRIPT, base, folder / "mine", json.dumps(ENTRY)],
        cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *lines, told = done.stdout.strip().split("\n")
    return base, folder / "mine", lines, json.loads(told)


def test_labels_are_the_completion_s_tokens_alone(folders) -> None:
    told = folders[3]
    for (prompt, completion), tokens, labels in zip(told["examples"], told["tokens"], told["labels"], strict=True):
        padding = len(tokens) - len(prompt) - len(completion)
        assert tokens[: len(tokens) - padding] == prompt + completion
        assert labels == [-100] * len(prompt) + completion + [-100] * padding
    assert told["texts"] == [told["row"][0], told["row"][1] + told["end"]]


def test_the_loss_falls_and_progress_is_printed(folders) -> None:
    steps = [line for line in folders[2] if line.startswith("mine: step ")]
    losses = [float(line.partition("loss ")[2].partition(",")[0]) for line in steps]
    assert [line.split(",")[0] for line in steps] == ["mine: step 10/20", "mine: step 20/20"]
    assert losses[-1] < 0.7 * losses[0] and steps[-1].endswith(", 0 s left")


def test_the_folder_is_the_base_with_other_linear_layers_in_float32(folders) -> None:
    base, model, _, told = folders
    assert told["type"] == "torch.float32"
    assert len(told["changed"]) == 2 * 7 and all("_proj." in name for name in told["changed"])
    assert set(told["trained"]) == {"lora_A", "lora_B"}
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
        assert (model / name).read_bytes() == (base / name).read_bytes()


def test_its_record_says_what_it_is_from(folders) -> None:
    base, model, _, _ = folders
    record = provenance.read(model)
    assert model_folder.check(model, chat_template=True) == record["sha256"]
    assert record["base_sha256"] == provenance.read(base)["sha256"] and record["quantised"] == "Q4_1"
    assert (record["model"], record["settings"]["warm_up"]) == (ENTRY["model"], ENTRY)
    assert 0 < record["loss"] < 10
