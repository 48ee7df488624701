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
from eval.importers.__main__ import check_sample_names, import_samples, parse_mapping
from eval.importers.answers import without_answer
from grading.extraction import extract


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
    with pytest.raises(UserError, match=r"no field out\.words in row 1"):
        import_samples("jsonl", [path], "b", "r", mapping={"completion": "out.words", "gold": "answer"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}\n[1]\n", "should have idx, gt, code"),
        ("[1]\n", "line 1 is not"),
        ("", "hold none"),
        ('{"idx": 1', "line 1 is not"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, text, message):
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(UserError, match=message):
        import_samples("qwen-math", [tmp_path / "a.jsonl"], "b", "r")


@pytest.mark.parametrize("code", ["a text", 5, None, [None], ["a", 5]])
def test_completions_that_are_no_list_of_texts_are_refused(tmp_path, code):
    good, wrong = {"idx": 3, "gt": "18", "code": ["a"]}, {"idx": 4, "gt": "18", "code": code}
    path = lines(tmp_path / "a.jsonl", good, wrong)
    with pytest.raises(UserError, match=r"a\.jsonl, row 2: code should be a list of strings, the completions, but is"):
        import_samples("qwen-math", [path], "b", "r")
    logged = lines(tmp_path / "b.jsonl", {"doc_id": 0, "target": "5", "resps": code})
    with pytest.raises(UserError, match=r"b\.jsonl, row 1: resps should"):
        import_samples("lm-eval", [logged], "b", "r")
    if code != "a text":  # of plain JSONL that is one completion
        with pytest.raises(UserError, match=r"a\.jsonl, row 2: code should"):
            import_samples("jsonl", [path], "b", "r", mapping={"completion": "code", "gold": "gt"})


def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path):
    row = b'{"idx": 3, "gt": "18", "code": ["a"]}\n'
    (tmp_path / "a.jsonl").write_bytes(row + b"\n" + row.replace(b"a", b"\xff"))
    with pytest.raises(UserError, match=r"line 3 is not a JSON object .* byte 0xff in position 33"):
        import_samples("qwen-math", [tmp_path / "a.jsonl"], "b", "r")


def test_wrong_mappings_are_named():
    with pytest.raises(UserError, match="no column answers"):
        parse_mapping("answers=a,completion=b,gold=c")
    with pytest.raises(UserError, match="at least the fields"):
        parse_mapping("completion=b")


@pytest.mark.slow
def test_command_line_says_what_is_unknown(tmp_path):
    path = lines(tmp_path / "a.jsonl", {"idx": 3, "gt": "18", "code": ["a"]})
    command = [sys.executable, "-m", "eval.importers", "--format", "qwen-math", "--benchmark", "gsm8k", "--run", "r"]
    done = subprocess.run(
        [*command, "--input", path, "--output", tmp_path / "o.parquet"],
        capture_output=True, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0
    assert "left null: seed, prompt, finish_reason, prompt_tokens, completion_tokens" in done.stderr
    assert (tmp_path / "o.parquet.provenance.json").is_file()
    assert len(tables.read(tmp_path / "o.parquet", tables.SAMPLE)) == 1


def problems_of(*questions):
    asked = [[{"role": "user", "content": text}] for text in questions]
    rows = [
        {"problem_id": f"p{i}", "task": "math", "messages": messages, "answer": str(i), "meta": "{}"}
        for i, messages in enumerate(asked)
    ]
    return pa.Table.from_pylist(rows, tables.PROBLEM)


def test_generations_are_matched_to_the_problems_of_a_benchmark(tmp_path):
    path = lines(
        tmp_path / "a.jsonl",
        {"idx": 7, "question": "How many  men?\n", "gt": "x", "code": ["c"], "score": [True]},
        {"idx": 5, "question": "How many?", "gt": "0", "code": ["a", "b"], "score": [False, True]},
    )
    benchmark = problems_of("How many?", "How many men?")
    table, source = import_samples("qwen-math", [path], "b", "r", problems=benchmark)
    assert columns(table, "problem_id", "repeat", "gold") == [("p1", 0, "1"), ("p0", 0, "0"), ("p0", 1, "0")]
    assert source == [
        {"problem_id": "p1", "repeat": 0, "source_id": "7", "source_gold": "x", "right": True},
        {"problem_id": "p0", "repeat": 0, "source_id": "5", "source_gold": "0", "right": False},
        {"problem_id": "p0", "repeat": 1, "source_id": "5", "source_gold": "0", "right": True},
    ]
    table, _ = import_samples("qwen-math", [path], "b", "r", problems=benchmark, by="order")
    assert columns(table, "problem_id", "gold") == [("p0", "0"), ("p1", "1"), ("p1", "1")]
    with pytest.raises(
        UserError, match="3 of 3 generations match no problem of the benchmark by id, the first is that of 7"
    ):
        import_samples("qwen-math", [path], "b", "r", problems=benchmark, by="id")
    with pytest.raises(UserError, match="should be as many problems"):
        import_samples("qwen-math", [path], "b", "r", problems=problems_of("How many?"), by="order")
    with pytest.raises(UserError, match="check the benchmark"):
        import_samples("qwen-math", [path], "b", "r", problems=problems_of("How many men?"))


def test_plain_jsonl_is_matched_by_its_question(tmp_path):
    row = {"output": "c", "answer": "x", "problem": "How many  men?"}
    path = lines(tmp_path / "a.jsonl", row, row | {"problem": 5})
    benchmark = problems_of("5", "How many men?")
    for column in ("question", "prompt"):
        mapping = parse_mapping(f"completion=output,gold=answer,{column}=problem")
        if column == "prompt":
            path = lines(tmp_path / "a.jsonl", row, row | {"problem": "Say: 5"})
        table, _ = import_samples("jsonl", [path], "b", "r", mapping=mapping, problems=benchmark)
        assert columns(table, "problem_id", "gold") == [("p1", "1"), ("p0", "0")]
    with pytest.raises(UserError, match="the field of the question: --map …,question=FIELD"):
        import_samples(
            "jsonl", [path], "b", "r", mapping=parse_mapping("completion=output,gold=answer"), problems=benchmark
        )


def test_half_characters_are_replaced_and_counted(tmp_path, capsys):
    row = {"out": "a\ud800b\ude00\ud83d", "answer": "\udfff1", "asked": "\U0001f600"}
    path = lines(tmp_path / "a.jsonl", row)
    mapping = {"completion": "out", "gold": "answer", "prompt": "asked"}
    table, source = import_samples("jsonl", [path], "b", "r", mapping=mapping)
    assert columns(table, "completion", "gold", "prompt") == [("a\ufffdb\ufffd\ufffd", "\ufffd1", "\U0001f600")]
    assert source[0]["source_gold"] == "\ufffd1"
    assert "replaced by U+FFFD: 4\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("named", "run", "step", "message"),
    [
        ("aime42", "r", 0, "no benchmark 'aime42'"),
        ("gsm8k", "../../etc", 0, "--run should be a name"),
        ("gsm8k", "/etc", 0, "--run should be a name"),
        ("gsm8k", "a/../b", 0, "--run should be a name"),
        ("gsm8k", "", 0, "--run should be a name"),
        ("gsm8k", "r", -5, r"--step should be .* but is -5"),
    ],
)
def test_what_cannot_name_samples_is_refused(named, run, step, message):
    check_sample_names("gsm8k", "imported/qwen2.5-math-1.5b-instruct/seed-0", 0)
    with pytest.raises(UserError, match=message):
        check_sample_names(named, run, step)


def test_a_prompt_that_holds_the_question_is_matched_to_the_longest(tmp_path):
    row = {"doc_id": 0, "target": "5", "arguments": [["Be brief. How many men? Think.", {}]], "resps": [["x"]]}
    path = lines(tmp_path / "a.jsonl", row)
    table, _ = import_samples("lm-eval", [path], "b", "r", problems=problems_of("How many", "How many men?"))
    assert columns(table, "problem_id", "gold") == [("p1", "1")]


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


def test_golds_that_are_whole_solutions_give_their_answer(tmp_path, capsys):
    rows = [
        {"doc_id": 0, "target": "so $x=2$, \\boxed{2}. Not \\boxed{\\frac{1}{3}}", "resps": [["x"]]},
        {"doc_id": 1, "target": "2+2=4\n#### 1,234", "resps": [["y"]]},
        {"doc_id": 2, "target": "7", "resps": [["z"]]},
    ]
    table, source = import_samples("lm-eval", [lines(tmp_path / "a.jsonl", *rows)], "b", "r")
    assert columns(table, "gold") == [("\\frac{1}{3}",), ("1234",), ("7",)]
    assert source[1]["source_gold"] == rows[1]["target"]
    assert "2 golds are whole solutions" in capsys.readouterr().err


def test_the_qwen_harness_answer_is_preferred_to_its_damaged_gold(tmp_path):
    row = {"idx": 0, "gt": "(x)=x^2", "answer": "f(x)=x^2", "code": ["a"]}
    table, _ = import_samples("qwen-math", [lines(tmp_path / "a.jsonl", row)], "b", "r")
    assert columns(table, "gold") == [("f(x)=x^2",)]


def test_what_matches_is_imported_when_asked(tmp_path, capsys):
    rows = [{"idx": i, "question": text, "gt": "x", "code": ["c"]} for i, text in enumerate(("A?", "B?", "C?"))]
    path, some = lines(tmp_path / "a.jsonl", *rows), problems_of("C?", "A?")
    with pytest.raises(UserError, match=r"1 of 3 .* import the other 2 with --allow-missing"):
        import_samples("qwen-math", [path], "b", "r", problems=some)
    table, _ = import_samples("qwen-math", [path], "b", "r", problems=some, allow_missing=True)
    assert columns(table, "problem_id") == [("p1",), ("p0",)]
    assert "Left out: 1 generations of 1 problems: 1" in capsys.readouterr().err
    table, _ = import_samples("qwen-math", [path], "b", "r", problems=some, by="order", allow_missing=True)
    assert columns(table, "problem_id") == [("p0",), ("p1",)]
    with pytest.raises(UserError, match="3 of 3 generations match no problem"):
        import_samples("qwen-math", [path], "b", "r", problems=problems_of("D?"), allow_missing=True)


def test_the_recommended_way_to_match_does_match(tmp_path):
    rows = [{"idx": f"p{i}", "question": "other", "gt": "x", "code": ["c"]} for i in range(2)]
    path, some = lines(tmp_path / "a.jsonl", *rows), problems_of("A?", "B?")
    with pytest.raises(UserError, match="or try --match id, which matches 2, or try --match order, which matches 2"):
        import_samples("qwen-math", [path], "b", "r", problems=some)
    for way in ("id", "order"):
        assert len(import_samples("qwen-math", [path], "b", "r", problems=some, by=way)[0]) == 2


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
    with pytest.raises(UserError, match=r"row 1: the verdict should be true or false, 1 or 0, but is 'maybe'"):
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


def test_a_file_of_another_benchmark_is_refused_without_its_problems_too(tmp_path, capsys):
    rows = [{"idx": i, "question": f"Question {i}?", "gt": str(i), "code": ["\\boxed{1}"]} for i in range(31)]
    with pytest.raises(UserError, match="aime24 has 30 problems, but the generations are of 31"):
        import_samples("qwen-math", [lines(tmp_path / "many.jsonl", *rows)], "aime24", "r")
    words = [row | {"gt": "\\frac{1}{2}"} for row in rows[:12]] + rows[12:20]
    with pytest.raises(UserError, match=r"the gold answers of aime24 are numbers, but 12 of the generations' 20"):
        import_samples("qwen-math", [lines(tmp_path / "words.jsonl", *words)], "aime24", "r")
    stored = tmp_path / "demo" / "data" / "benchmarks" / "aime24.parquet"
    tables.write(problems_of("Another?", "Question 3?"), tables.PROBLEM, stored)
    few = lines(tmp_path / "few.jsonl", *rows[:3])
    with pytest.raises(UserError, match="no question of the generations is one of aime24"):
        import_samples("qwen-math", [few], "aime24", "r", results=tmp_path)
    import_samples("qwen-math", [lines(tmp_path / "fits.jsonl", *rows[:4])], "aime24", "r", results=tmp_path)
    assert "1 of 4 questions are in" in capsys.readouterr().err
    import_samples("qwen-math", [few], "aime24", "r")
    assert "Not compared with the questions of aime24" in capsys.readouterr().err


def test_an_unknown_benchmark_comes_with_the_lines_that_add_it():
    with pytest.raises(UserError, match=r"(?s)no benchmark 'aime42'.*eval/benchmarks/aime42\.yaml:.*files: "):
        check_sample_names("aime42", "r", 0)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["\\boxed{1}", "\\boxed{2}"], ["0 of 2 (0.0 %)"]),
        (["The answer is 18."] * 3, ["3 of 3 (100.0 %)", "--extraction answer-is of eval.grade finds 3", "WARNING"]),
        (["I see 18."] * 2, ["--extraction last-number of eval.grade finds 2", "WARNING"]),
        (["nothing", *["\\boxed{1}"] * 9], ["1 of 10 (10.0 %)", '… "nothing"', "no rule finds them"]),
    ],
)
def test_completions_without_an_answer_are_never_a_silent_zero(texts, expected):
    said = without_answer(texts, "math")
    assert all(words in said for words in expected)
    assert ("WARNING" in said) == ("WARNING" in expected)


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("Final Answer: The final answer is $6+9i$. I hope it is correct.", "$6+9i$"),
        ("Final Answer: The final answer is 12. I hope it is correct.", "12"),
        ("Answer: The answer is $x$ and $y$.", "$x$ and $y$"),
        ("Answer: 7", "7"),
        ("Answer: The answer is 3.5. Therefore he has 3.5 left.", "3.5"),
    ],
)
def test_answer_line_passes_the_answer_not_the_sentence(completion, answer):
    assert extract(completion, "answer-line").answer == answer
