"""Stops are declared by a model folder of links; asked in an environment with transformers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from tests import needs
from tests.contract.tiny_model import copy_model
from tests.warm_python import warm_python

pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    needs.environments("trl"),
]
SCRIPT = """
import dataclasses, json, sys
from pathlib import Path
from system.errors import UserError
from frameworks import stop_tokens
from frameworks.adapter import Paths
from recipes.runs import load_run
run = load_run("crosscheck/trl", "full")
for given in json.loads(sys.argv[1]):
    stage = dataclasses.replace(run.stages[0], rollout={"stop": given})
    try:
        print(stop_tokens.with_stops(run, stage, Paths(Path(), Path("model"), Path("work"))).model)
        print(*(file.read_text().replace("\\n", " ") for file in Path("work").glob("model/generation_config.json")))
    except UserError as error:
        print(error)
"""


def test_every_stop_is_declared_besides_the_models_own_end(tmp_path: Path) -> None:
    copy_model(tmp_path / "model", environment="trl")
    own = json.loads((tmp_path / "model" / "generation_config.json").read_text())
    stops = json.dumps([[], ["<|im_start|>", "a", 3], ["not a token"], [9999]])
    done = subprocess.run(
        [warm_python("trl"), "-c", SCRIPT, stops], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    none, nothing, linked, declared, *refused = done.stdout.strip().split("\n")
    vocabulary = json.loads((tmp_path / "model" / "tokenizer.json").read_text())["model"]["vocab"]
    assert (none, nothing, linked) == ("model", "", "work/model")
    assert json.loads(declared) | {"_from_model_config": True} == own | {
        "eos_token_id": [1, 2, vocabulary["a"], 3]
    }  # 1 is <|im_end|>
    assert (tmp_path / "work" / "model" / "model.safetensors").resolve() == tmp_path / "model" / "model.safetensors"
    assert json.loads((tmp_path / "model" / "generation_config.json").read_text()) == own
    for stop, message in zip(["'not a token'", "9999"], refused, strict=True):
        assert message.startswith(f"trl.yaml: full.rollout.stop: {stop} is not one token of model")
