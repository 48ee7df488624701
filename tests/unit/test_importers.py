"""Importers: one small file per layout, unknown columns left null, mistakes named."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts import tables
from contracts.errors import UserError
from eval.importers.__main__ import import_samples, parse_mapping


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def columns(table, *names):
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


def test_qwen_math(tmp_path):
    path = lines(
        tmp_path / "a.jsonl",
        {"idx": 3, "gt": "18", "code": ["a", "b"]},
        {"idx": 4, "gt": "", "answer": "x", "code": ["c"]},
    )
    table = import_samples("qwen-math", [path], "gsm8k", "other")
    assert table.schema == tables.SAMPLE
    assert columns(table, "problem_id", "repeat", "gold", "completion") == [
        ("3", 0, "18", "a"),
        ("3", 1, "18", "b"),
        ("4", 0, "x", "c"),
    ]
    assert table.column("finish_reason").null_count == 3
    again = import_samples("qwen-math", [path, path], "gsm8k", "other")
    assert sorted(columns(again, "problem_id", "repeat")) == [
        ("3", 0),
        ("3", 1),
        ("3", 2),
        ("3", 3),
        ("4", 0),
        ("4", 1),
    ]


def test_lm_eval(tmp_path):
    row = {"doc_id": 0, "target": "5", "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {}}}, "resps": [["x", "y"]]}
    old = {"doc_id": 1, "target": "6", "arguments": [["R", {}]], "resps": [["z"]]}
    path = lines(
        tmp_path / "a.jsonl", row | {"filter": "strict"}, row | {"filter": "flexible"}, old | {"filter": "strict"}
    )
    table = import_samples("lm-eval", [path], "gsm8k", "other")
    assert columns(table, "problem_id", "repeat", "prompt", "completion", "gold") == [
        ("0", 0, "Q", "x", "5"),
        ("0", 1, "Q", "y", "5"),
        ("1", 0, "R", "z", "6"),
    ]


def test_lighteval_both_layouts(tmp_path):
    old = {"full_prompt": "Q", "gold": ["7"], "predictions": ["x", "y"], "example_id": "9"}
    pq.write_table(pa.Table.from_pylist([old]), tmp_path / "old.parquet")
    table = import_samples("lighteval", [tmp_path / "old.parquet"], "b", "r")
    assert columns(table, "problem_id", "repeat", "prompt", "gold") == [("9", 0, "Q", "7"), ("9", 1, "Q", "7")]
    doc = {"id": "4", "query": "Q", "choices": ["7"], "gold_index": 0}
    new = {"doc": doc, "model_response": {"text": ["x"], "output_tokens": [[1, 2, 3]]}}
    pq.write_table(pa.Table.from_pylist([new]), tmp_path / "new.parquet")
    table = import_samples("lighteval", [tmp_path / "new.parquet"], "b", "r")
    assert columns(table, "problem_id", "completion", "gold", "completion_tokens") == [("4", "x", "7", 3)]


def test_plain_jsonl_with_a_mapping(tmp_path):
    path = lines(tmp_path / "a.jsonl", {"out": {"text": "x"}, "answer": 5}, {"out": {"text": ["y", "z"]}, "answer": 6})
    mapping = parse_mapping("completion=out.text,gold=answer")
    table = import_samples("jsonl", [path], "b", "r", mapping=mapping)
    assert columns(table, "problem_id", "repeat", "completion", "gold") == [
        ("0", 0, "x", "5"),
        ("1", 0, "y", "6"),
        ("1", 1, "z", "6"),
    ]
    with pytest.raises(UserError, match=r"no field out\.words in line 1"):
        import_samples("jsonl", [path], "b", "r", mapping={"completion": "out.words", "gold": "answer"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}\n[1]\n", "lacks idx, gt, code"),
        ("[1]\n", "line 1 is not"),
        ("", "hold none"),
        ('{"idx": 1', "line 1 is not"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, text, message):
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(UserError, match=message):
        import_samples("qwen-math", [tmp_path / "a.jsonl"], "b", "r")


def test_wrong_mappings_are_named():
    with pytest.raises(UserError, match="no column answers"):
        parse_mapping("answers=a,completion=b,gold=c")
    with pytest.raises(UserError, match="at least which fields"):
        parse_mapping("completion=b")


@pytest.mark.slow
def test_command_line_says_what_is_unknown(tmp_path):
    path = lines(tmp_path / "a.jsonl", {"idx": 3, "gt": "18", "code": ["a"]})
    command = [sys.executable, "-m", "eval.importers", "--format", "qwen-math", "--benchmark", "b", "--run", "r"]
    done = subprocess.run(
        [*command, "--input", path, "--output", tmp_path / "o.parquet"],
        capture_output=True, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0
    assert "left null: seed, prompt, finish_reason, prompt_tokens, completion_tokens" in done.stderr
    assert (tmp_path / "o.parquet.provenance.json").is_file()
    assert len(tables.read(tmp_path / "o.parquet", tables.SAMPLE)) == 1
