"""What lm-eval itself writes is imported; and one added YAML file is a benchmark that lm-eval runs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from contracts import tables
from envs.build import python
from eval import vllm_settings
from system import json_lines
from tests import needs
from tests.contract.tiny_model import copy_model
from tests.warm_python import warm_python

ROOT = Path(__file__).parents[2]
PYTHON = python("eval")
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    needs.environments("eval"),
]
TASK = """
task: foreign
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: generate_until
doc_to_text: "Q: {{question}}\\nA:"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\\n\\n"], max_gen_toks: 16, do_sample: true, temperature: 1.0}
repeats: 2
filter_list:
  - name: first
    filter: [{function: take_first}]
  - name: last
    filter: [{function: regex, regex_pattern: "(\\\\d+)"}, {function: take_first}]
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
"""
# Without its own 14,000 task files, which it reads for ten seconds.
LM_EVAL = """
import functools, lm_eval.tasks
lm_eval.tasks.TaskManager = functools.partial(lm_eval.tasks.TaskManager, include_defaults=False)
from lm_eval.__main__ import cli_evaluate
cli_evaluate()
"""
QUESTIONS = {"What is 1+1?": "2", "What is 2+3?": "5", "What is 3+4?": "7"}


def run(*arguments, cwd=ROOT, interpreter=None, cache=""):
    settings = {**os.environ, "PYTHONPATH": str(cwd), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    settings |= vllm_settings.environment("cpu")
    if cache:
        settings["HF_DATASETS_CACHE"] = str(cache)
    command = [interpreter or warm_python("eval"), *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.long
def test_the_samples_that_lm_eval_logs(tmp_path):
    copy_model(tmp_path / "model")
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in QUESTIONS.items()))
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/foreign.yaml").write_text(TASK.replace("DATA", str(data)))
    run(
        "-c", LM_EVAL, "run", "--model", "vllm", "--model_args",
        f"pretrained={tmp_path / 'model'},dtype=float32,enforce_eager=True,max_model_len=512",
        "--tasks", "foreign", "--include_path", tmp_path / "tasks", "--log_samples",
        "--output_path", tmp_path / "out", cache=tmp_path / "cache",
    )  # fmt: skip
    (logged,) = (tmp_path / "out").rglob("samples_foreign_*.jsonl")
    problems = [
        {"problem_id": f"p{a}", "task": "math", "messages": [{"role": "user", "content": q}], "answer": a, "meta": "{}"}
        for q, a in reversed(QUESTIONS.items())
    ]
    tables.write(pa.Table.from_pylist(problems, tables.PROBLEM), tables.PROBLEM, tmp_path / "problems.parquet")
    done = run(
        "-m", "eval.importers", "--format", "lm-eval", "--input", logged, "--benchmark", "gsm8k", "--run", "r",
        "--problems", tmp_path / "problems.parquet", "--output", tmp_path / "s.parquet", interpreter=sys.executable,
    )  # fmt: skip
    rows = tables.read(tmp_path / "s.parquet", tables.SAMPLE).to_pylist()
    assert sorted((row["problem_id"], row["repeat"], row["gold"]) for row in rows) == [
        (f"p{a}", repeat, a) for a in sorted(QUESTIONS.values()) for repeat in (0, 1)
    ]
    written = list(json_lines.read(logged))
    assert {row["filter"] for row in written} == {"first", "last"}
    by_question = {row["doc"]["question"]: row["resps"][0] for row in written}
    answers = {a: q for q, a in QUESTIONS.items()}
    for row in rows:
        assert row["completion"] == by_question[answers[row["gold"]]][row["repeat"]]
        assert row["prompt"] == f"Q: {answers[row['gold']]}\nA:"
    assert "left null: seed, finish_reason, prompt_tokens, completion_tokens" in done.stderr


def test_one_yaml_file_is_a_benchmark(tmp_path):
    project = tmp_path / "project"
    for part in ("config", "contracts", "envs", "eval", "frameworks", "grading", "recipes", "system", "tasks"):
        shutil.copytree(ROOT / part, project / part, ignore=shutil.ignore_patterns("__pycache__"))
    (project / "eval/benchmarks/mine.yaml").write_text(
        "include: _base_yaml\ntask: crosszero_mine\nmetadata:\n  source:\n    task: math\n    rows: 3\n"
        "    columns: {question: question, answer: answer}\n    files:\n      - {path: mine.jsonl}\n"
    )
    (tmp_path / "mirror").mkdir()
    text = "".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in QUESTIONS.items())
    (tmp_path / "mirror/mine.jsonl").write_text(text)
    table = tmp_path / "data/mine.parquet"
    run("-m", "tasks.load_problems", "mine", "--output", table, "--mirror", tmp_path / "mirror", cwd=project,
        interpreter=sys.executable)  # fmt: skip
    ids = tables.read(table, tables.PROBLEM)["problem_id"].to_pylist()
    rows = [
        {"run": "r", "step": 0, "benchmark": "mine", "problem_id": name, "repeat": 0, "completion": "\\boxed{5}",
         "finish_reason": "stop", "protocol": "greedy-boxed"}
        for name in ids
    ]  # fmt: skip
    tables.write(pa.Table.from_pylist(rows, tables.SAMPLE), tables.SAMPLE, tmp_path / "samples/mine.parquet")
    run("-m", "eval.lm_eval", "run", "--model", "crosszero-stored-samples", "--tasks", "crosszero_mine", "--model_args",
        f"samples={tmp_path}/samples,data={tmp_path}/data", "--output_path", tmp_path / "out", cwd=project)  # fmt: skip
    (results,) = (tmp_path / "out").rglob("results_*.json")
    assert json.loads(results.read_text())["results"]["crosszero_mine"]["accuracy,judged"] == pytest.approx(1 / 3)
