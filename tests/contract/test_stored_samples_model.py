"""Grading stored samples by our command and through lm-eval with the replay model: the same verdicts."""

import json
import math
import os
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts import paths, tables
from envs.build import python
from tests import needs
from tests.hostile_text import TEXTS, encodable
from tests.user_errors import printed_code
from tests.warm_python import warm_python

ROOT = Path(__file__).parents[2]
PYTHON = python("eval")
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    needs.environments("eval"),
]
# completion, how it ended, verdict, verdict when a last number counts too
CASES = [
    (r"2+2 is \boxed{4}", "stop", "correct", "correct"),
    (r"2+2 is \boxed{5}", "stop", "wrong", "wrong"),
    (r"<think>\boxed{4}</think> It is 4.", "stop", "no_answer", "correct"),
    (r"So \boxed{4} and then 1 + 1 =", "length", "correct", "correct"),
    ("Let me see: 2 + 2 = 4", "length", "truncated", "truncated"),
    ("", "prompt_too_long", "no_answer", "no_answer"),
]


def run(*arguments):
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        [warm_python("eval"), "-m", *arguments], cwd=ROOT, env=settings, capture_output=True, text=True
    )


@pytest.fixture
def project(tmp_path):
    """Two problems with three samples each, in two checkpoints."""
    message = {"role": "user", "content": "2+2?"}
    problems = [
        {"problem_id": name, "task": "arithmetic", "messages": [message], "answer": "4", "meta": "{}"} for name in "ab"
    ]
    tables.write(
        pa.Table.from_pylist(problems, tables.PROBLEM), tables.PROBLEM, tmp_path / "data/arithmetic_words.parquet"
    )
    for step in (0, 7):
        rows = [
            {
                "run": "r", "step": step, "benchmark": "arithmetic_words", "problem_id": "ab"[n // 3], "repeat": n % 3,
                "completion": completion, "finish_reason": reason, "protocol": "demo",
            }
            for n, (completion, reason, *_) in enumerate(CASES)
        ]  # fmt: skip
        path = tmp_path / "samples" / f"step-{step}" / "arithmetic_words.parquet"
        tables.write(pa.Table.from_pylist(rows, tables.SAMPLE), tables.SAMPLE, path)
    return tmp_path


def grade(project, output, *more):
    return run(
        "eval.grade", "--samples", project / "samples", "--data", project / "data", "--output", project / output, *more
    )


def verdicts(path):
    return [row["verdict"] for row in tables.read(path, tables.GRADED).to_pylist()]


def test_the_same_samples_under_two_rules(project):
    done = grade(project, "graded")
    assert done.returncode == 0, done.stderr
    again = grade(project, "again", "--extraction", "last-number")
    assert again.returncode == 0, again.stderr
    for step in (0, 7):
        path = project / "graded" / f"step-{step}" / "arithmetic_words.parquet"
        graded = tables.read(path, tables.GRADED).to_pylist()
        assert [(row["completion"], row["verdict"]) for row in graded] == [(c, v) for c, _, v, _ in CASES]
        assert {row["gold"] for row in graded} == {"4"}
        assert {row["step"] for row in graded} == {step}
        assert verdicts(project / "again" / f"step-{step}" / "arithmetic_words.parquet") == [v for *_, v in CASES]
        record = json.loads(path.with_name(f"{path.name}.provenance.json").read_text())
        assert record["delivered"] == record["graded"] == 6
        assert record["verdicts"]["correct"] == 2


def test_a_plain_lm_eval_command_line(project):
    done = run(
        "eval.lm_eval", "run", "--model", "crosszero-stored-samples", "--tasks", "crosszero_arithmetic_words",
        "--model_args", f"samples={project}/samples/step-7,data={project}/data,protocol=demo,repeats=3",
        "--output_path", project / "results", "--log_samples",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (results,) = (project / "results").rglob("results_*.json")
    metrics = json.loads(results.read_text())["results"]["crosszero_arithmetic_words"]
    assert metrics["accuracy,judged"] == pytest.approx(2 / 6)
    assert metrics["truncated,judged"] == pytest.approx(1 / 6)


# The whole of lm-eval: tasks, the replay model, the filter; every sample's grade, as JSON on the last line.
THROUGH_LM_EVAL = """
import json, sys
from pathlib import Path
from lm_eval.evaluator import evaluate
from contracts import paths, tables
from eval.stored_samples_model import StoredSamples
from tests.contract.lm_eval_tasks import load_tasks
found = []
for path in paths.tables(Path(sys.argv[1])):
    samples = tables.read(path, tables.SAMPLE)
    protocol, repeats = samples["protocol"][0].as_py(), max(samples["repeat"].to_pylist()) + 1
    tasks = load_tasks([path.stem], data=sys.argv[2], protocol=protocol, repeats=repeats)
    results = evaluate(StoredSamples(str(path.parent)), {"tasks": tasks}, bootstrap_iters=0)
    found += [
        [path.parent.name, path.stem, logged["doc"]["problem_id"], repeat, grade["answer"], grade["verdict"]]
        for logged in results["samples"][path.stem]
        for repeat, grade in enumerate(logged["filtered_resps"][0])
    ]
print(json.dumps(found))
"""
DEMO = ROOT / "results" / "demo"
HOSTILE = [*TEXTS.values(), *(completion for completion, *_ in CASES)]
DEMO_SAMPLES = sorted(DEMO.glob("runs/*/*/seed-*/samples"))


def both_ways(samples, data, output):
    """The grades of all samples in a folder by lm-eval with the replay model, and by our command."""
    done = subprocess.run(
        [warm_python("eval"), "-c", THROUGH_LM_EVAL, samples, data],
        cwd=ROOT, env={**os.environ, "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ours = run("eval.grade", "--samples", samples, "--data", data, "--output", output)
    assert ours.returncode == 0, ours.stderr
    keys = ("benchmark", "problem_id", "repeat", "answer", "verdict")
    rows = [
        [path.parent.name, *(row[key] for key in keys)]
        for path in paths.tables(output)
        for row in tables.read(path, tables.GRADED).to_pylist()
    ]
    return json.loads(done.stdout.rstrip("\n").rpartition("\n")[2]), rows


def test_both_ways_give_every_sample_the_same_grade(project):
    for path in paths.tables(project / "samples"):
        first = pq.read_table(path).to_pylist()[0]
        rows = [
            first | {"problem_id": name, "repeat": repeat, "completion": encodable(text)}
            for name in "ab"
            for repeat, text in enumerate(HOSTILE)
        ]
        tables.write(pa.Table.from_pylist(rows, tables.SAMPLE), tables.SAMPLE, path)
    through_lm_eval, ours = both_ways(project / "samples", project / "data", project / "graded")
    assert len(ours) == 4 * len(HOSTILE) and through_lm_eval == ours


@pytest.mark.skipif(not DEMO_SAMPLES, reason="the demo was not run here (make demo)")
def test_both_ways_give_the_demos_samples_the_same_grade(tmp_path):
    through_lm_eval, ours = both_ways(DEMO_SAMPLES[0], DEMO / "data" / "benchmarks", tmp_path)
    assert len(ours) > 100 and through_lm_eval == ours


def test_where_it_is_not_known_how_samples_ended_neither_is_the_share_of_truncated_ones(project):
    path = project / "samples/step-7/arithmetic_words.parquet"
    rows = [{**row, "finish_reason": None} for row in pq.read_table(path).to_pylist()]
    tables.write(pa.Table.from_pylist(rows, tables.SAMPLE), tables.SAMPLE, path)
    done = run(
        "eval.lm_eval", "run", "--model", "crosszero-stored-samples", "--tasks", "crosszero_arithmetic_words",
        "--model_args", f"samples={project}/samples/step-7,data={project}/data,protocol=demo,repeats=3",
        "--output_path", project / "results",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (results,) = (project / "results").rglob("results_*.json")
    metrics = json.loads(results.read_text())["results"]["crosszero_arithmetic_words"]
    assert metrics["accuracy,judged"] == pytest.approx(2 / 6)
    assert math.isnan(metrics["truncated,judged"])


def test_a_hole_in_the_samples_is_refused(project):
    path = project / "samples/step-7/arithmetic_words.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    done = grade(project, "graded")
    assert done.returncode == 1
    assert printed_code(done.stderr) == "missing-samples"
    assert not (project / "graded/step-7").exists()
    done = run(
        "eval.lm_eval", "run", "--model", "crosszero-stored-samples", "--tasks", "crosszero_arithmetic_words",
        "--model_args", f"samples={project}/samples/step-7,data={project}/data,protocol=demo,repeats=3",
    )  # fmt: skip
    assert done.returncode == 1
    assert printed_code(done.stderr) == "missing-samples"


def test_samples_of_an_unknown_protocol_need_a_rule(project):
    for step in (0, 7):
        path = project / f"samples/step-{step}/arithmetic_words.parquet"
        rows = [{**row, "protocol": None} for row in pq.read_table(path).to_pylist()]
        tables.write(pa.Table.from_pylist(rows, tables.SAMPLE), tables.SAMPLE, path)
    done = grade(project, "graded")
    assert done.returncode == 1
    assert printed_code(done.stderr) == "missing-extraction"
    done = grade(project, "graded", "--extraction", "none")
    assert done.returncode == 0, done.stderr
    assert verdicts(project / "graded/step-0/arithmetic_words.parquet") == [v for _, _, v, _ in CASES]
