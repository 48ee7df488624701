"""Logs of inspect_ai: read in both layouts, and written. The two files are inspect_ai 0.3.285's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from contracts import tables
from eval import export_inspect
from eval.importers import inspect_logs
from eval.importers.import_samples import import_samples
from tests.forked_command import run_module
from tests.unit.generations import problems_of
from tests.user_errors import refused

CASES = Path(__file__).parent / "cases"
LAYOUTS = [CASES / "inspect_log.eval", CASES / "inspect_log.json"]
EXPECTED = [
    ("7", 0, "5", "The sum is 4", "length", False),
    ("7", 1, "5", "The sum is 5", "stop", True),
    ("a", 0, "2", "The sum is 2", "stop", True),
    ("a", 1, "2", "The sum is 2", "stop", True),
    ("c", 0, "7", "The sum is 7", "stop", True),
    ("c", 1, "7", "The sum is 9", "stop", False),
]


def read_rows(file: Path) -> list[tuple[object, ...]]:
    names = ("problem_id", "repeat", "gold", "completion", "finish_reason", "right")
    return sorted(tuple(row[name] for name in names) for row in inspect_logs.read(file))


@pytest.mark.parametrize("file", LAYOUTS, ids=lambda file: file.suffix)
def test_epochs_are_repeats(file: Path) -> None:
    assert read_rows(file) == EXPECTED
    table, source = import_samples("inspect", [file], "gsm8k", "imported/mine")
    assert table["completion_tokens"].to_pylist() == [4] * 6 and len(source) == 6


@pytest.mark.parametrize("file", LAYOUTS, ids=lambda file: file.suffix)
def test_a_damaged_log_is_one_sentence(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    middle = whole.index(b"The sum") if file.suffix == ".json" else whole.index(b"samples/") + 60
    for number, data in enumerate((whole[: len(whole) // 2], whole[:middle] + b"\xff\0" + whole[middle + 2 :], b"")):
        broken = tmp_path / f"{number}{file.suffix}"
        broken.write_bytes(data)
        with refused("damaged-log"):
            list(inspect_logs.read(broken))


def test_a_sample_that_failed_is_not_an_empty_completion(tmp_path: Path) -> None:
    log = json.loads(LAYOUTS[1].read_text())
    log["samples"][0]["error"] = {"message": "out of credit"}
    (tmp_path / "log.json").write_text(json.dumps(log))
    with refused("unfinished-sample"):
        list(inspect_logs.read(tmp_path / "log.json"))


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (lambda samples: samples.append(samples[0]), "duplicate-samples"),
        (lambda samples: samples[0]["output"].update(choices=[]), "unfinished-sample"),
        (lambda samples: samples[0].update(id=None), "damaged-log"),
        (lambda samples: samples[0].update(epoch=10**30), "damaged-log"),
        (lambda samples: samples[0].update(epoch="1"), "damaged-log"),
        (lambda samples: samples[0].pop("target"), "damaged-log"),
        (lambda samples: samples[0]["output"]["usage"].update(output_tokens=10**30), "damaged-log"),
    ],
)
def test_a_sample_that_cannot_count_is_one_sentence(
    tmp_path: Path, edit: Callable[[list[Any]], object], code: str
) -> None:
    log = json.loads(LAYOUTS[1].read_text())
    edit(log["samples"])
    (tmp_path / "log.json").write_text(json.dumps(log))
    with refused(code):
        list(inspect_logs.read(tmp_path / "log.json"))


def test_parts_of_a_message(tmp_path: Path) -> None:
    log = json.loads(LAYOUTS[1].read_text())
    parts = [{"type": "reasoning", "reasoning": "2+2"}, {"type": "text", "text": "4"}, {"type": "image", "image": "x"}]
    log["samples"] = log["samples"][:1]
    log["samples"][0]["output"]["choices"][0]["message"]["content"] = parts
    (tmp_path / "log.json").write_text(json.dumps(log))
    assert [row["completion"] for row in inspect_logs.read(tmp_path / "log.json")] == ["<think>2+2</think>4"]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    rows = [
        {"run": "r", "step": 20, "benchmark": "b", "problem_id": problem, "repeat": repeat, "prompt": "Q\u2028",
         "gold": "1", "completion": f"{problem} {repeat} é", "finish_reason": reason, "prompt_tokens": 3,
         "completion_tokens": 4, "protocol": "p", "answer": None, "verdict": verdict, "grader": "g"}
        for problem in ("x", "y")
        for repeat, (reason, verdict) in enumerate([("stop", "correct"), ("length", "truncated")])
    ]  # fmt: skip
    path = tmp_path / "graded" / "step-20" / "b.parquet"
    tables.write(pa.Table.from_pylist(rows, tables.GRADED), tables.GRADED, path)
    options = ["--graded", tmp_path / "graded", "--output", tmp_path / "logs"]
    run_module("eval.export_inspect", *options).check_returncode()
    (log,) = (tmp_path / "logs").iterdir()
    assert json.loads(log.read_text())["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 0.5
    assert read_rows(log) == [
        (problem, repeat, "1", f"{problem} {repeat} é", reason, right)
        for problem in ("x", "y")
        for repeat, (reason, right) in enumerate([("stop", True), ("length", False)])
    ]


def test_the_input_of_imported_samples_is_their_question(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "imported" / "mine" / "graded" / "step-0" / "gsm8k.parquet"
    row = {"run": "r", "step": 0, "benchmark": "gsm8k", "repeat": 0, "completion": "c", "verdict": "wrong"}
    rows = [row | {"problem_id": name} for name in ("p0", "p1")]
    tables.write(pa.Table.from_pylist(rows, tables.GRADED), tables.GRADED, path)
    assert export_inspect.questions_of(path) == {}
    samples = path.parents[2] / "samples" / "step-0" / "gsm8k.parquet.source.jsonl"
    samples.parent.mkdir(parents=True)
    samples.write_text('{"problem_id": "p0", "question": "How many?"}\n{"problem_id": "p1"}\n')
    assert export_inspect.questions_of(path) == {"p0": "How many?"}
    inputs = [sample["input"] for sample in export_inspect.log(export_inspect.with_questions(path), "")["samples"]]
    assert inputs == ["How many?", ""]
    tables.write(problems_of("One?", "Two?"), tables.PROBLEM, path.parents[2] / "problems" / "gsm8k.parquet")
    assert export_inspect.questions_of(path) == {"p0": "One?", "p1": "Two?"}
