"""The commands behind `make gpu-smoke`: read by the real parsers at full scale, and run for real on the CPU."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cluster import memory
from cluster.gpu_smoke import commands
from cluster.gpu_smoke.commands import LOCKED, Place
from contracts import tables
from contracts.run_file import ROOT, Run, framework_names
from envs.build import python
from eval import run_settings as evaluations

pytestmark = [pytest.mark.contract, pytest.mark.slow]
CHECK = """
import sys
from frameworks import adapter
from recipes.runs import load_run
for file in sys.argv[1:]:
    run = load_run(file, "full")
    adapter.load(run.framework).check(run)
"""
TRAININGS = [run for run in commands.runs("demo") if commands.row_of(run) not in commands.servers()]


def built(environment: str) -> None:
    if not (python(environment).parent.parent / ".stamp").is_file():
        pytest.skip(f"environment {environment} is not built; make test builds it")


@pytest.mark.parametrize("framework", framework_names())
def test_the_installed_release_accepts_every_row(framework: str) -> None:
    built(framework)
    files = [run.file for run in commands.runs("full") if run.framework == framework]
    assert files
    done = subprocess.run(
        [python(framework), "-c", CHECK, *files], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("scale", ["demo", "full"])
def test_every_row_s_evaluation_exists(scale: str) -> None:
    for run in commands.runs(scale):
        evaluations.check_evaluation(run)


@pytest.fixture(scope="module", params=TRAININGS, ids=commands.row_of)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """A training's row beside that of the device, run on the CPU with the same commands; and their folder."""
    run: Run = request.param
    for environment in ("eval", run.framework):
        built(environment)
    folder = tmp_path_factory.mktemp("gpu-smoke") / "folder"
    words = ["-m", "cluster.gpu_smoke", "--device", "cpu", "--no-build", "--minutes", "120", "--folder", folder]
    words += ["--row", "device", commands.row_of(run)]
    done = subprocess.run([python("base"), *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return run, folder


@pytest.mark.smoke_long
def test_it_trains_exports_and_evaluates(trained: tuple[Run, Path]) -> None:
    run, folder = trained
    lines = [line for line in (folder / "table.md").read_text().split("\n") if line.startswith("| ")]
    assert [line.split(" | ")[1] for line in lines[2:]] == ["ok", "ok"]
    results = folder / "runs" / commands.row_of(run)
    log = tables.read(results / "training_log.parquet", tables.TRAINING_LOG).to_pylist()
    assert [row["step"] for row in log] == list(range(1, run.stages[0].steps + 1))
    assert any(row["zero_signal_rate"] != 1 for row in log)  # null where a prompt has one sample
    scores = tables.read(results / "scores.parquet", tables.SCORE).to_pylist()
    assert [row["step"] for row in scores] == [run.checkpoint_steps[-1]]


@pytest.mark.smoke_long
def test_it_was_ended_between_its_checkpoints(trained: tuple[Run, Path]) -> None:
    run, folder = trained
    printed = (folder / "logs" / f"{commands.row_of(run)}.log").read_text()
    trainings = printed.split(" -m frameworks train ")[1:]
    assert len(trainings) == len(run.stages[0].checkpoints)
    assert ["resuming from step" in text for text in trainings] == [False, True][: len(trainings)]


def test_the_estimate_has_the_model_s_shape(tmp_path: Path) -> None:
    """cluster/models.yaml states what recipes/models.yaml makes."""
    built("eval")
    run, place = commands.runs("full")[0], Place(tmp_path, "cpu", LOCKED)
    subprocess.run(place.make_model(run), cwd=ROOT, check=True, capture_output=True)
    config = json.loads((place.model(run) / "config.json").read_text())
    shape = memory.shape(run.model)
    assert shape is not None
    assert shape["layers"] == config["num_hidden_layers"] and shape["hidden"] == config["hidden_size"]
    assert shape["kv_heads"] == config["num_key_value_heads"]
    assert shape["head"] == config["hidden_size"] / config["num_attention_heads"]
    assert shape["vocabulary"] == pytest.approx(config["vocab_size"], rel=0.1)
    weights = (place.model(run) / "model.safetensors").stat().st_size / 4
    assert shape["parameters"] == pytest.approx(weights, rel=0.01)
