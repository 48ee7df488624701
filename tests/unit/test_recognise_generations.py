"""Generations made elsewhere: the program that wrote a file and the benchmark, both by the content alone."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts import tables
from contracts.paths import ResultsFolder
from contracts.run_file import ROOT
from eval.importers import recognise_benchmark
from eval.importers.recognise_benchmark import ProblemTables, assign, recognise
from eval.importers.recognise_file import OUR_SAMPLES, Source, expand, read_all, read_generations
from system import json_lines
from tests import needs
from tests.unit.generations import lines, problems_of
from tests.user_errors import refused

CASES = Path(__file__).parent / "cases"
MIRROR = ROOT.parent / "shared" / "data"
QWEN = MIRROR / "generations" / "qwen2.5-math-1.5b-instruct"
needs_mirror = needs.published("generations/qwen2.5-math-1.5b-instruct", "generations/gsm8k_four_models.jsonl")
WRITTEN_BY_HARNESSES = {
    "foreign/lm_eval_gsm8k.jsonl": ("lm-eval", 32),
    "foreign/lm_eval_minerva_math.jsonl": ("lm-eval", 32),
    "foreign/lighteval.parquet": ("lighteval", 32),
    "foreign/inspect.eval": ("inspect", 32),
    "inspect_log.eval": ("inspect", 6),
    "inspect_log.json": ("inspect", 6),
}
SIZES = {"aime24": 30, "amc23": 40, "gsm8k": 1319, "math500": 500, "minerva_math": 272, "olympiadbench": 675}


@pytest.mark.parametrize("name", WRITTEN_BY_HARNESSES)
def test_a_harness_is_recognised_by_its_file_under_any_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "no_ending"
    path.symlink_to(CASES / name)
    generations = read_generations(path)
    assert (generations.layout, len(generations.rows)) == WRITTEN_BY_HARNESSES[name]


@pytest.fixture(scope="module")
def published() -> ProblemTables:
    """The problems of the mirror, each loaded once."""
    return ProblemTables(ResultsFolder(Path("none")), MIRROR)


@pytest.mark.slow
@needs_mirror
@pytest.mark.parametrize("name", SIZES)
def test_real_files_of_the_qwen_harness(name: str, published: ProblemTables) -> None:
    generations = read_generations(QWEN / f"{name}.jsonl")
    assert (generations.layout, len(generations.rows)) == ("qwen-math", SIZES[name])
    ((benchmark, rows, problems),) = recognise(generations.rows, published)
    assert (benchmark, len(rows), len(problems)) == (name, SIZES[name], SIZES[name])


@pytest.mark.slow
@needs_mirror
def test_a_file_of_several_models_names_them(published: ProblemTables) -> None:
    path = MIRROR / "generations" / "gsm8k_four_models.jsonl"
    with refused("several-models"):
        read_generations(path)
    rows = read_generations(path, model="175b_verification").rows
    assert recognise(rows, published)[0].benchmark == "gsm8k" and sum(row["right"] for row in rows) == 742


@pytest.mark.slow
@needs_mirror
def test_a_folder_of_six_benchmarks(published: ProblemTables) -> None:
    read, metrics = read_all([str(QWEN)])
    parts = recognise([row for one in read for row in one.rows], published)
    assert {part.benchmark: len(part.rows) for part in parts} == SIZES and len(metrics) == 6


def as_csv(rows: list[dict[str, Any]], path: Path, delimiter: str = ",") -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


REWRITES: dict[str, Callable[[list[dict[str, Any]], Path], object]] = {
    "csv": as_csv,
    "semicolons": lambda rows, path: as_csv(rows, path, ";"),
    "parquet": lambda rows, path: pq.write_table(pa.Table.from_pylist(rows), path),
    "json list": lambda rows, path: path.write_text(json.dumps(rows, indent=1)),
    "gzip": lambda rows, path: path.write_bytes(gzip.compress(text_of(rows))),
    "bzip2": lambda rows, path: path.write_bytes(bz2.compress(text_of(rows))),
    "chat": lambda rows, path: path.write_text("".join(json.dumps(chat(row)) + "\n" for row in rows)),
}


def text_of(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def chat(row: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": row["question"]}], "response": row["completion"]}


@pytest.mark.slow
@needs_mirror
@pytest.mark.parametrize("name", REWRITES)
def test_real_generations_in_other_files(name: str, tmp_path: Path, published: ProblemTables) -> None:
    real = list(json_lines.read(QWEN / "aime24.jsonl"))
    rows = [{"question": row["question"], "completion": row["code"][0], "answer": row["gt"]} for row in real]
    REWRITES[name](rows, tmp_path / "file")
    generations = read_generations(tmp_path / "file")
    assert [row["completion"] for row in generations.rows] == [row["completion"] for row in rows]
    (part,) = recognise(generations.rows, published)
    assert (part.benchmark, len(part.rows)) == ("aime24", 30)


def test_our_own_samples_are_generations_and_verdicts_are_not(tmp_path: Path) -> None:
    row = dict.fromkeys(tables.SAMPLE.names) | {
        "run": "r", "step": 1, "benchmark": "gsm8k", "problem_id": "p", "repeat": 0, "completion": "c", "gold": "1"
    }  # fmt: skip
    tables.write(pa.Table.from_pylist([row], tables.SAMPLE), tables.SAMPLE, tmp_path / "a.parquet")
    generations = read_generations(tmp_path / "a.parquet")
    assert generations.layout == OUR_SAMPLES and generations.rows[0]["problem_id"] == "p"
    graded = pa.Table.from_pylist([row | {"verdict": "correct"}], tables.GRADED)
    tables.write(graded, tables.GRADED, tmp_path / "b.parquet")
    with refused("graded-already"):
        read_generations(tmp_path / "b.parquet")


ROW = {"idx": 0, "gt": "1", "code": ["a"]}


@pytest.mark.parametrize(
    ("text", "code", "facts"),
    [
        ("", "no-generations", {}),
        (json.dumps(ROW) + '\n{"idx": 1, "gt', "invalid-json", {"line": 2, "cut": True}),
        (json.dumps(ROW) + '\n{"doc_id": 1}\n', "missing-field", {"row": 2}),
        ('{"num_samples": 30, "acc": 10.0}', "not-generations", {}),
        ('{"results": {}, "configs": {}}', "not-generations", {}),
        (json.dumps(ROW | {"code": ["", " "]}), "no-completions", {}),
        (
            '{"a": {"solution": "x"}, "b": {"solution": "y"}}',
            "several-models",
            {"choices": ["a", "b"]},
        ),
        ("just a text\nof two lines\n", "not-generations", {}),
        ('{"idx": 1,\n', "invalid-json", {"line": 1}),
        ("[1, 2]", "not-generations", {}),
        ('{"question": "q", "completion": null}', "wrong-type", {"field": "completion"}),
        (
            '{"question": "q", "completions": ["a", "b"], "finish_reason": ["stop"]}',
            "wrong-type",
            {"field": "finish_reason"},
        ),
        ("\x00\x01\x02\n", "not-generations", {}),
    ],
)
def test_what_is_no_file_of_generations_is_named(tmp_path: Path, text: str, code: str, facts: dict[str, Any]) -> None:
    (tmp_path / "file").write_text(text)
    with refused(code, **facts):
        read_generations(tmp_path / "file")


@pytest.mark.parametrize("first", [b'{"question": "', b'[\n{"question": "'])
def test_text_of_another_encoding_is_named(tmp_path: Path, first: bytes) -> None:
    (tmp_path / "file").write_bytes(first + b'caf\xe9", "completion": "x"}')
    with refused("not-utf8"):
        read_generations(tmp_path / "file")


def test_completions_in_a_list_may_have_their_own_finish_reasons(tmp_path: Path) -> None:
    reasons = ["stop", "length", None]
    row = {"question": "q", "completions": ["a", "b", "c"], "finish_reason": reasons, "score": [1, 0, 1]}
    (tmp_path / "file").write_text(json.dumps(row))
    assert [row["finish_reason"] for row in read_generations(tmp_path / "file").rows] == reasons


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name in (str(tmp_path / "pipe.jsonl"), "/dev/zero"):
        with refused("no-regular-file"):
            read_all([name])


def test_folders_and_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines(tmp_path / "a.jsonl", ROW)
    lines(tmp_path / "b.jsonl", ROW)
    lines(tmp_path / "metrics.json", {"acc": 1})
    monkeypatch.chdir(tmp_path)
    assert expand(["*.jsonl", "a.jsonl"]) == [Source(Path("a.jsonl")), Source(Path("b.jsonl"))]
    assert expand(["a.jsonl#m", "."])[:2] == [Source(Path("a.jsonl"), False), Source(Path("b.jsonl"), False)]
    read, others = read_all([str(tmp_path)])
    assert len(read) == 2 and others == [tmp_path / "metrics.json"]
    with refused("not-generations"):
        read_all([str(tmp_path), "metrics.json"])
    with refused("missing-file"):
        read_all(["*.parquet"])
    lines(tmp_path / "c.jsonl", {"doc_id": 0, "target": "1", "resps": [["x"]]})
    with refused("mixed-formats"):
        read_all(["*.jsonl"])


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProblemTables:
    """Three benchmarks: the problems of the second are all in the third, as those of AMC 2023 are in the older set."""
    results = ResultsFolder(tmp_path)
    questions = {
        "aime24": ["What is it?", "What is that?"], "amc23": ["How many?", "How much?"],
        "amc83": ["How many?", "How much?", "How far?"],
    }  # fmt: skip
    for name, texts in questions.items():
        tables.write(problems_of(*texts), tables.PROBLEM, results.problems("benchmarks", name))
    monkeypatch.setattr(recognise_benchmark, "_benchmarks_to_try", lambda: [list(questions), []])
    return ProblemTables(results, None)


def rows_with(*questions: str) -> list[dict[str, Any]]:
    return [
        {"problem_id": str(i), "repeat": 0, "completion": "c", "gold": str(i), "source_gold": str(i), "question": text}
        for i, text in enumerate(questions)
    ]


def test_a_benchmark_inside_another_one(stored: ProblemTables) -> None:
    assert recognise(rows_with("How  much?", "how many"), stored)[0].benchmark == "amc23"
    assert recognise(rows_with("How much?", "How many?", "HOW FAR ?"), stored)[0].benchmark == "amc83"
    with refused("ambiguous-benchmark", candidates=["amc23", "amc83"]):
        recognise(rows_with("How much?"), stored)
    assert assign(rows_with("How much?"), "amc83", stored).rows[0]["problem_id"] == "p1"


def test_several_benchmarks_in_one_file(stored: ProblemTables) -> None:
    parts = recognise(rows_with("What is it?", "How far?", "How much?", "How many?"), stored)
    assert {part.benchmark: [row["gold"] for row in part.rows] for part in parts} == {
        "amc83": ["2", "1", "0"], "aime24": ["0"]
    }  # fmt: skip


def test_unknown_questions(stored: ProblemTables) -> None:
    rows = rows_with("What is it?", "Who am I?")
    with refused("unknown-questions", count=1, candidates=["aime24"]):
        recognise(rows, stored)
    assert len(recognise(rows, stored, allow_missing=True)[0].rows) == 1
    with refused("unknown-questions", count=1, candidates=[]):
        recognise(rows_with("Who am I?"), stored, allow_missing=True)


def test_generations_without_questions(stored: ProblemTables) -> None:
    rows = [row | {"question": None} for row in rows_with("", "")]
    with refused("benchmark-not-recognised"):
        recognise(rows, stored)
    assert [row["problem_id"] for row in assign(rows, "aime24", stored).rows] == ["p0", "p1"]
    with refused("unmatched-generations"):
        assign([row | {"source_gold": "7"} for row in rows], "aime24", stored)
    with refused("unknown-name"):
        assign(rows, "aime2024", stored)
