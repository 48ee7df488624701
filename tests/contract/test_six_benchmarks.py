"""The first problems of all real benchmarks: a tiny model through the real vLLM, graded, scored, and replayed."""

import json
import os
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from contracts import tables
from envs.build import python
from tests import needs
from tests.contract.tiny_model import copy_model
from tests.forked_command import run_module
from tests.warm_python import warm_python

ROOT = Path(__file__).parents[2]
MIRROR = ROOT / "../shared/data"
PYTHON = python("eval")
BENCHMARKS = {"gsm8k": 1319, "math500": 500, "minerva_math": 272, "olympiadbench": 675, "aime24": 30, "amc23": 40}
FIRST, REPEATS, CONTEXT = 3, 4, 6144
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    needs.environments("eval"),
    pytest.mark.skipif(not MIRROR.is_dir(), reason="needs the data mirror at ../shared/data"),
]


def run(*arguments):
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [warm_python("eval"), *map(str, arguments)], cwd=ROOT, env=settings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The benchmarks' first problems, and samples of a model of random letters that sometimes ends with a number."""
    folder = tmp_path_factory.mktemp("six")
    copy_model(folder / "model", context=CONTEXT)
    for name, rows in BENCHMARKS.items():
        file = folder / "data" / f"{name}.parquet"
        loading = run_module("tasks.load_problems", name, "--output", file, "--mirror", MIRROR)
        assert loading.returncode == 0, loading.stderr
        table = tables.read(file, tables.PROBLEM)
        assert len(table) == rows
        tables.write(table.slice(0, FIRST), tables.PROBLEM, file)
    run(
        "-m", "eval.generate", "--run", "test/tiny/seed-0", "--checkpoint", f"0={folder / 'model'}",
        "--benchmark", *BENCHMARKS, "--protocol", "qwen-math", "--set", "temperature=1.0", "--set", "max_tokens=300",
        "--set", f"repeats={REPEATS}", "--data", folder / "data", "--work", folder / "work",
        "--output", folder / "samples", "--device", "cpu",
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def graded(project):
    """The graded samples by benchmark."""
    run("-m", "eval.grade", "--samples", project / "samples", "--data", project / "data", "--output",
        project / "graded")  # fmt: skip
    return {name: tables.read(project / "graded/step-0" / f"{name}.parquet", tables.GRADED) for name in BENCHMARKS}


@pytest.fixture(scope="module")
def scores(project, graded):
    """The row of scores by benchmark."""
    scoring = run_module("eval.score", "--graded", project / "graded", "--problems", project / "data", "--output",
                         project / "scores.parquet")  # fmt: skip
    assert scoring.returncode == 0, scoring.stderr
    return {row["benchmark"]: row for row in pq.read_table(project / "scores.parquet").to_pylist()}


def test_every_completion_has_its_problem_s_gold_answer_and_prompt(project, graded):
    for name, table in graded.items():
        problems = tables.read(project / "data" / f"{name}.parquet", tables.PROBLEM)
        gold = dict(zip(problems["problem_id"].to_pylist(), problems["answer"].to_pylist(), strict=True))
        for row in table.to_pylist():
            assert row["gold"] == gold[row["problem_id"]]
            assert row["prompt"].startswith("<|im_start|>system\nPlease reason step by step")


def test_random_letters_are_no_answer(graded):
    rows = [row for table in graded.values() for row in table.to_pylist()]
    assert len(rows) == len(BENCHMARKS) * FIRST * REPEATS
    assert {row["finish_reason"] for row in rows} <= {"stop", "length"}
    assert {row["verdict"] for row in rows} == {"no_answer", "truncated"}  # they make no box, which the prompt asks for
    assert not any(row["answer"] for row in rows if row["finish_reason"] == "length"), "a stray number of a cut one"


def test_graded_again_the_verdicts_are_the_same(project, graded):
    run("-m", "eval.grade", "--samples", project / "samples", "--data", project / "data", "--output",
        project / "again")  # fmt: skip
    again = {name: tables.read(project / "again/step-0" / f"{name}.parquet", tables.GRADED) for name in BENCHMARKS}
    assert again == graded


def test_every_benchmark_is_scored_on_all_its_samples(scores):
    sizes = {name: (row["n_problems"], row["k_repeats"]) for name, row in scores.items()}
    assert sizes == dict.fromkeys(BENCHMARKS, (FIRST, REPEATS))


def test_lm_eval_on_the_stored_samples_gives_the_same_scores(project, scores):
    run(
        "-m", "eval.lm_eval", "run", "--model", "crosszero-stored-samples",
        "--tasks", ",".join(f"crosszero_{name}" for name in BENCHMARKS), "--model_args",
        f"samples={project}/samples/step-0,data={project}/data,protocol=qwen-math,repeats={REPEATS}",
        "--output_path", project / "results",
    )  # fmt: skip
    (results,) = (project / "results").rglob("results_*.json")
    metrics = json.loads(results.read_text())["results"]
    for name, row in scores.items():
        assert metrics[f"crosszero_{name}"]["accuracy,judged"] == pytest.approx(row["avg_at_k"])
        assert metrics[f"crosszero_{name}"]["truncated,judged"] == pytest.approx(row["n_truncated"] / (FIRST * REPEATS))
