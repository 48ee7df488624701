"""The run files of `make gpu-smoke`: read by the real parsers at full scale; `make test-smoke` runs them on the CPU."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cluster import gpu_memory
from cluster.gpu_smoke.rows import smoke_runs
from contracts.run_file import ROOT, framework_names
from eval import run_settings
from tests import needs
from tests.warm_python import warm_python

pytestmark = [pytest.mark.contract, pytest.mark.slow]
CHECK = """
import sys
from frameworks import adapter
from recipes.runs import load_run
for name in sys.argv[1:]:
    run = load_run(name, "full")
    adapter.load(run.framework).check(run)
"""


@pytest.mark.parametrize("framework", framework_names())
def test_the_installed_release_accepts_every_row(framework: str) -> None:
    needs.skip_without(framework)
    names = [run.name for run in smoke_runs("full").values() if run.framework == framework]
    assert names
    done = subprocess.run(
        [warm_python(framework), "-c", CHECK, *names], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("scale", ["demo", "full"])
def test_every_row_s_evaluation_exists(scale: str) -> None:
    for run in smoke_runs(scale).values():
        run_settings.check_evaluation(run)


def test_the_estimate_has_the_model_s_shape(tmp_path: Path) -> None:
    """cluster/models.yaml states what recipes/models.yaml makes."""
    needs.skip_without("eval")
    model, folder = next(iter(smoke_runs("full").values())).model, tmp_path / "model"
    command = [warm_python("eval"), "-m", "recipes.models", model, "--output", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    config = json.loads((folder / "config.json").read_text())
    shape = gpu_memory.model_shape(model)
    assert shape is not None
    assert shape["layers"] == config["num_hidden_layers"] and shape["hidden"] == config["hidden_size"]
    assert shape["kv_heads"] == config["num_key_value_heads"]
    assert shape["head"] == config["hidden_size"] / config["num_attention_heads"]
    assert shape["vocabulary"] == pytest.approx(config["vocab_size"], rel=0.1)
    weights = (folder / "model.safetensors").stat().st_size / 4
    assert shape["parameters"] == pytest.approx(weights, rel=0.01)
