"""`crosszero show`: what a file or folder is, in ten lines at most."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from analysis.artefacts.describe import describe, find_result
from analysis.compare_checkpoints.recognise_side import recognise_side
from cli.main import crosszero
from contracts import provenance, tables
from contracts.paths import ResultsFolder
from contracts.run_file import ROOT
from system.errors import UserError
from tests.unit.generations import problems_of
from tests.user_errors import refused

CASES = Path(__file__).parent / "cases"


def facts(path: Path) -> dict[str, str]:
    lines = describe(path).splitlines()
    assert 2 < len(lines) <= 10 and all(len(line) <= 200 for line in lines)
    return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}


GRADED = {
    "run": "r/n/seed-0", "step": 24, "benchmark": "gsm8k", "problem_id": "p", "repeat": 0, "completion": "c",
    "gold": "1", "protocol": "demo", "verdict": "correct", "grader": "g", "finish_reason": "stop",
}  # fmt: skip


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run with verdicts at two steps."""
    for step in (0, 24):
        rows = [GRADED | {"step": step, "problem_id": name} for name in "ab"]
        path = tmp_path / "demo" / "runs" / "r" / "n" / "seed-0" / "graded" / f"step-{step}" / "gsm8k.parquet"
        tables.write(pa.Table.from_pylist(rows, tables.GRADED), tables.GRADED, path)
        provenance.write(path, extraction="none", samples={"protocol": {"prompt": "boxed", "temperature": 1.0}})
    return tmp_path / "demo" / "runs" / "r" / "n" / "seed-0"


def test_verdicts_and_the_folders_around_them(run_folder: Path) -> None:
    one = facts(run_folder / "graded" / "step-24" / "gsm8k.parquet")
    assert (one["run"], one["step"], one["benchmark"]) == ("r/n/seed-0", "24", "gsm8k")
    assert "prompt boxed" in one["protocol"] and one["numbers"].startswith("100.0 %") and " by commit " in one["made"]
    assert "2 steps (0, 24)" in facts(run_folder / "graded")["what"]
    assert facts(run_folder / "graded" / "step-24")["step"] == "24"
    assert (facts(run_folder)["run"], facts(run_folder)["steps"]) == ("r/n/seed-0", "0, 24")
    assert "all results" in facts(run_folder.parents[3])["what"]
    record = facts(run_folder / "graded" / "step-24" / "gsm8k.parquet.provenance.json")
    assert "provenance record of gsm8k.parquet" in record["what"] and "samples" in record["says"]


@pytest.mark.parametrize(
    ("schema", "row", "what"),
    [
        (tables.SAMPLE, GRADED, "samples"),
        (tables.TRAINING_LOG, {"run": "r", "stage": 1, "step": 1, "reward_mean": 0.5}, "a training log"),
        (tables.ROLLOUT, {"run": "r", "stage": 1, "step": 1, "completion": "c", "reward": 1.0}, "rollouts"),
        (tables.PROBLEM, problems_of("How many?").to_pylist()[0], "a problem table"),
        (tables.SCORE, GRADED | {"avg_at_k": 0.5, "n_problems": 2, "k_repeats": 1}, "scores"),
    ],
)
def test_our_tables(schema: pa.Schema, row: dict[str, object], what: str, tmp_path: Path) -> None:
    tables.write(pa.Table.from_pylist([row], schema), schema, tmp_path / "t.parquet")
    assert facts(tmp_path / "t.parquet")["what"].startswith(what)
    tables.write(pa.Table.from_pylist([], schema), schema, tmp_path / "none.parquet")
    assert facts(tmp_path / "none.parquet")["what"].startswith(what)


def test_a_model_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2", "max_position_embeddings": 512}))
    assert "no readable weights" in facts(tmp_path)["numbers"]
    header = json.dumps({"w": {"dtype": "BF16", "shape": [3, 5], "data_offsets": [0, 30]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 30)
    provenance.write(tmp_path, run="r/n/seed-0", step=24, model="demo", sha256="abc")
    model = facts(tmp_path)
    assert model["numbers"] == "15 parameters (BF16)" and (model["run"], model["step"]) == ("r/n/seed-0", "24")
    assert facts(tmp_path / "model.safetensors")["what"] == "the weights of a model"
    assert facts(tmp_path / "config.json")["what"] == "a model's configuration"


def test_files_of_the_project_and_of_others() -> None:
    assert "lm-eval" in facts(CASES / "foreign" / "lm_eval_gsm8k.jsonl")["what"]
    assert "lighteval" in facts(CASES / "foreign" / "lighteval.parquet")["what"]
    run = facts(ROOT / "recipes" / "openr1" / "qwen2.5-math-7b.yaml")
    assert run["what"].startswith("a run file") and run["run"] == "openr1/qwen2.5-math-7b"
    assert facts(ROOT / "eval" / "benchmarks" / "gsm8k.yaml")["rows"] == "1319 problems"


def test_a_comparison_and_a_page(tmp_path: Path) -> None:
    line = {"benchmark": "gsm8k", "difference": {"value": 0.1}, "verdict": "better"}
    content = {"checkpoint": "b", "baseline": "a", "verdict": "better", "exit_status": 0, "lines": [line]}
    (tmp_path / "comparison.json").write_text(json.dumps(content))
    (tmp_path / "index.html").write_text("<!doctype html>")
    provenance.write(tmp_path)
    for path in (tmp_path, tmp_path / "comparison.json"):
        assert facts(path)["what"] == "a comparison: b against a" and "+10.0 points" in facts(path)["numbers"]
    assert "better" in facts(tmp_path / "index.html")["verdict"]
    (tmp_path / "notes.rst").write_text("text\n")
    assert facts(tmp_path / "notes.rst")["what"] == f"part of {tmp_path}"


def test_one_model_of_a_file_of_several(tmp_path: Path) -> None:
    models = {name: {"solution": "A: 2", "is_correct": name == "a"} for name in "ab"}
    (tmp_path / "file.jsonl").write_text(json.dumps({"question": "1 + 1?", "ground_truth": "2"} | models) + "\n")
    assert facts(tmp_path / "file.jsonl")["models"] == "a, b"
    assert facts(tmp_path / "file.jsonl#a")["numbers"].startswith("100.0 %")


@pytest.mark.parametrize("text", ["a text\n", "", "{}", "\x00"])
def test_what_it_is_not(text: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    with refused("not-recognised"):
        describe(tmp_path / "a")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "t.parquet")
    for path, code in (("t.parquet", "not-recognised"), (".", "not-recognised"), ("b", "missing-file")):
        with refused(code):
            describe(tmp_path / path)


def test_names_of_runs_and_checkpoints(run_folder: Path) -> None:
    results = ResultsFolder(run_folder.parents[3])
    assert find_result("r/n/seed-0", results) == run_folder
    step = results.run("r/n/seed-0").checkpoint(24)
    step.mkdir(parents=True)
    assert find_result("r/n/seed-0/step-24", results) == step
    verdicts = results.run("r/n/seed-0").graded / "step-48"
    verdicts.mkdir(parents=True)
    assert find_result("r/n/seed-0/step-48", results) == verdicts
    with refused("unknown-step", step="25"):
        find_result("r/n/seed-0/step-25", results)
    assert find_result("tinyzero/ppo-3b", results) == ROOT / "recipes" / "tinyzero" / "ppo-3b.yaml"
    assert find_result("gsm8k", results) == ROOT / "eval" / "benchmarks" / "gsm8k.yaml"
    with refused("missing-file", name="r/other/seed-0"):
        find_result("r/other/seed-0", results)


@pytest.mark.parametrize(
    ("look", "typed", "near"),
    [
        (find_result, "opnr1/qwen2.5-math-7b", "openr1/qwen2.5-math-7b"),
        (find_result, "old.jsnl", "old.jsonl"),
        (recognise_side, "old.jsnl", "old.jsonl"),
    ],
)
def test_a_mistyped_name_is_answered_with_the_nearest(
    look: Callable[[str, ResultsFolder], Any], typed: str, near: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.jsonl").touch()
    with pytest.raises(UserError) as refusal:
        look(typed, ResultsFolder(tmp_path))
    assert near in str(refusal.value)


def test_the_command(run_folder: Path) -> None:
    path = str(run_folder / "graded")
    done = CliRunner().invoke(crosszero, ["show", path, path, f"{path}/none"], prog_name="crosszero")
    assert done.stdout == f"{describe(Path(path))}\n\n{describe(Path(path))}\n"  # what was found before it
    assert isinstance(done.exception, UserError) and done.exception.code == "missing-file"
