"""Importers: one small file per layout, unknown columns left null, mistakes named."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from contracts import tables
from eval.importers.import_samples import check_sample_names, import_samples, parse_mapping
from system.errors import UserError
from tests.forked_command import run_module
from tests.unit.generations import columns, lines
from tests.user_errors import refused


def test_qwen_math(tmp_path):
    path = lines(
        tmp_path / "a.jsonl",
        {"idx": 3, "gt": "18", "code": ["a", "b"]},
        {"idx": 4, "gt": "", "answer": "x", "code": ["c"]},
    )
    table, _ = import_samples("qwen-math", [path], "gsm8k", "other")
    assert table.schema == tables.SAMPLE
    assert columns(table, "problem_id", "repeat", "gold", "completion") == [
        ("3", 0, "18", "a"),
        ("3", 1, "18", "b"),
        ("4", 0, "x", "c"),
    ]
    assert table.column("finish_reason").null_count == 3
    again, _ = import_samples("qwen-math", [path, path], "gsm8k", "other")
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
    table, _ = import_samples("lm-eval", [path], "gsm8k", "other")
    assert columns(table, "problem_id", "repeat", "prompt", "completion", "gold") == [
        ("0", 0, "Q", "x", "5"),
        ("0", 1, "Q", "y", "5"),
        ("1", 0, "R", "z", "6"),
    ]


def test_lighteval_both_layouts(tmp_path):
    old = {"full_prompt": "Q", "gold": ["7"], "predictions": ["x", "y"], "example_id": "9"}
    pq.write_table(pa.Table.from_pylist([old]), tmp_path / "old.parquet")
    table, _ = import_samples("lighteval", [tmp_path / "old.parquet"], "b", "r")
    assert columns(table, "problem_id", "repeat", "prompt", "gold") == [("9", 0, "Q", "7"), ("9", 1, "Q", "7")]
    doc = {"id": "4", "query": "Q", "choices": ["7"], "gold_index": 0}
    new = {"doc": doc, "model_response": {"text": ["x"], "output_tokens": [[1, 2, 3]]}}
    pq.write_table(pa.Table.from_pylist([new]), tmp_path / "new.parquet")
    table, _ = import_samples("lighteval", [tmp_path / "new.parquet"], "b", "r")
    assert columns(table, "problem_id", "completion", "gold", "completion_tokens") == [("4", "x", "7", 3)]


def test_plain_jsonl_with_a_mapping(tmp_path):
    path = lines(tmp_path / "a.jsonl", {"out": {"text": "x"}, "answer": 5}, {"out": {"text": ["y", "z"]}, "answer": 6})
    mapping = parse_mapping("completion=out.text,gold=answer")
    table, _ = import_samples("jsonl", [path], "b", "r", mapping=mapping)
    assert columns(table, "problem_id", "repeat", "completion", "gold") == [
        ("0", 0, "x", "5"),
        ("1", 0, "y", "6"),
        ("1", 1, "z", "6"),
    ]
    with refused("missing-field", field="out.words", row=1):
        import_samples("jsonl", [path], "b", "r", mapping={"completion": "out.words", "gold": "answer"})


@pytest.mark.parametrize(
    ("text", "code", "facts"),
    [
        ("{}\n[1]\n", "missing-field", {"fields": ["idx", "gt", "code"]}),
        ("[1]\n", "invalid-json", {"line": 1}),
        ("", "no-generations", {}),
        ('{"idx": 1', "invalid-json", {"line": 1}),
    ],
)
def test_a_wrong_file_is_named(tmp_path, text, code, facts):
    (tmp_path / "a.jsonl").write_text(text)
    with refused(code, **facts):
        import_samples("qwen-math", [tmp_path / "a.jsonl"], "b", "r")


@pytest.mark.parametrize("code", ["a text", 5, None, [None], ["a", 5]])
def test_completions_that_are_no_list_of_texts_are_refused(tmp_path, code):
    good, wrong = {"idx": 3, "gt": "18", "code": ["a"]}, {"idx": 4, "gt": "18", "code": code}
    path = lines(tmp_path / "a.jsonl", good, wrong)
    with refused("wrong-type", field="code"):
        import_samples("qwen-math", [path], "b", "r")
    logged = lines(tmp_path / "b.jsonl", {"doc_id": 0, "target": "5", "resps": code})
    with refused("wrong-type", field="resps"):
        import_samples("lm-eval", [logged], "b", "r")
    if code != "a text":  # of plain JSONL that is one completion
        with refused("wrong-type", field="code"):
            import_samples("jsonl", [path], "b", "r", mapping={"completion": "code", "gold": "gt"})


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path):
    row = b'{"idx": 3, "gt": "18", "code": ["a"]}\n'
    (tmp_path / "a.jsonl").write_bytes(row + b"\n" + row.replace(b"a", b"\xff"))
    with refused("invalid-json", line=3):
        import_samples("qwen-math", [tmp_path / "a.jsonl"], "b", "r")


def test_wrong_mappings_are_named():
    with refused("unknown-field"):
        parse_mapping("answers=a,completion=b,gold=c")
    with refused("missing-field"):
        parse_mapping("completion=b")


@pytest.mark.slow
def test_command_line_says_what_is_unknown(tmp_path):
    path = lines(tmp_path / "a.jsonl", {"idx": 3, "gt": "18", "code": ["a"]})
    options = ["--format", "qwen-math", "--benchmark", "gsm8k", "--run", "r", "--input", path]
    done = run_module("eval.importers", *options, "--output", tmp_path / "o.parquet")
    assert done.returncode == 0
    assert "left null: seed, prompt, finish_reason, prompt_tokens, completion_tokens" in done.stderr
    assert (tmp_path / "o.parquet.provenance.json").is_file()
    assert len(tables.read(tmp_path / "o.parquet", tables.SAMPLE)) == 1


def test_half_characters_are_replaced_and_counted(tmp_path, capsys):
    row = {"out": "a\ud800b\ude00\ud83d", "answer": "\udfff1", "asked": "\U0001f600"}
    path = lines(tmp_path / "a.jsonl", row)
    mapping = {"completion": "out", "gold": "answer", "prompt": "asked"}
    table, source = import_samples("jsonl", [path], "b", "r", mapping=mapping)
    assert columns(table, "completion", "gold", "prompt") == [("a\ufffdb\ufffd\ufffd", "\ufffd1", "\U0001f600")]
    assert source[0]["source_gold"] == "\ufffd1"
    assert "replaced by U+FFFD: 4\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("named", "run", "step", "code"),
    [
        ("gsm8k", "../../etc", 0, "invalid-run-id"),
        ("gsm8k", "/etc", 0, "invalid-run-id"),
        ("gsm8k", "a/../b", 0, "invalid-run-id"),
        ("gsm8k", "", 0, "invalid-run-id"),
        ("gsm8k", "r", -5, "argument-out-of-range"),
    ],
)
def test_what_cannot_name_samples_is_refused(named, run, step, code):
    check_sample_names("gsm8k", "imported/qwen2.5-math-1.5b-instruct/seed-0", 0)
    with refused(code):
        check_sample_names(named, run, step)


def test_lighteval_with_columns_that_were_written_as_text(tmp_path):
    old = {"full_prompt": "Q", "gold": "['7']", "predictions": "['it\\'s 7', '[8]']", "cont_tokens": "[[1, 2], [3]]"}
    pq.write_table(pa.Table.from_pylist([old]), tmp_path / "old.parquet")
    table, _ = import_samples("lighteval", [tmp_path / "old.parquet"], "b", "r")
    assert columns(table, "problem_id", "repeat", "completion", "gold", "completion_tokens") == [
        ("0", 0, "it's 7", "7", 2),
        ("0", 1, "[8]", "7", 1),
    ]


def test_lighteval_details_as_documented(tmp_path):
    # The fields of Doc and ModelResponse, https://github.com/huggingface/lighteval
    doc = {
        "query": "Q", "choices": ["6", "7"], "gold_index": [1], "id": "0", "original_query": "", "specific": None,
        "task_name": "gsm8k|0", "instruction": "", "num_samples": 2, "stop_sequences": ["\n"],
    }  # fmt: skip
    response = {
        "input": "<user>Q", "input_tokens": [5], "text": ["x", "y"], "output_tokens": [[1, 2, 3], [4]],
        "text_post_processed": None, "logprobs": [], "truncated_tokens_count": 0,
    }  # fmt: skip
    rows = [{"doc": doc, "metric": {"extractive_match": 0.5}, "model_response": response}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "details_gsm8k_0.parquet")
    table, _ = import_samples("lighteval", [tmp_path / "details_gsm8k_0.parquet"], "b", "r")
    assert columns(table, "problem_id", "repeat", "prompt", "completion", "gold", "completion_tokens") == [
        ("0", 0, "<user>Q", "x", "7", 3),
        ("0", 1, "<user>Q", "y", "7", 1),
    ]


def test_verdicts_of_plain_jsonl_are_kept(tmp_path):
    path = lines(
        tmp_path / "a.jsonl", {"out": ["x", "y"], "answer": 5, "ok": [True, 0]}, {"out": "z", "answer": 6, "ok": 1}
    )
    mapping = parse_mapping("completion=out,gold=answer,right=ok")
    assert [row["right"] for row in import_samples("jsonl", [path], "b", "r", mapping=mapping)[1]] == [
        True,
        False,
        True,
    ]
    path = lines(tmp_path / "b.jsonl", {"out": "x", "answer": 5, "ok": "maybe"})
    with refused("value-not-allowed"):
        import_samples("jsonl", [path], "b", "r", mapping=mapping)


def test_lighteval_verdicts_of_several_samples(tmp_path):
    doc = {"id": "4", "query": "Q", "choices": ["7"], "gold_index": 0}
    kinds = [({"match": [1, 0]}, ["x", "y"]), ({"match": [0.5]}, ["x", "y"]), ({"match": [1]}, ["x"])]
    rows = [
        {"doc": doc | {"id": str(i)}, "model_response": {"text": text, "output_tokens": []}, "metric": metric}
        for i, (metric, text) in enumerate(kinds)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "new.parquet")
    _, source = import_samples("lighteval", [tmp_path / "new.parquet"], "b", "r")
    assert [row["right"] for row in source] == [True, False, None, None, True]


def test_an_unknown_benchmark_comes_with_the_lines_that_add_it():
    with pytest.raises(UserError) as caught:
        check_sample_names("aime42", "r", 0)
    assert (caught.value.code, caught.value.facts["name"]) == ("unknown-name", "aime42")
    _, _, added = str(caught.value).partition("eval/benchmarks/aime42.yaml:\n")
    assert yaml.safe_load(added)["metadata"]["source"]["files"]
