"""Importers: generations matched to a benchmark's problems, and completions in which no answer is found."""

import re

import pyarrow as pa
import pytest

from contracts import tables
from eval.importers.__main__ import print_differences
from eval.importers.import_samples import import_samples, parse_mapping
from eval.importers.missing_answers import without_answer
from grading.extraction import extract
from system.errors import UserError
from tests.unit.generations import columns, lines, problems_of
from tests.user_errors import refused


def test_generations_are_matched_to_the_problems_of_a_benchmark(tmp_path):
    path = lines(
        tmp_path / "a.jsonl",
        {"idx": 7, "question": "How many  men?\n", "gt": "x", "code": ["c"], "score": [True]},
        {"idx": 5, "question": "How many?", "gt": "0", "code": ["a", "b"], "score": [False, True]},
    )
    benchmark = problems_of("How many?", "How many men?")
    table, source = import_samples("qwen-math", [path], "b", "r", problems=benchmark)
    assert columns(table, "problem_id", "repeat", "gold") == [("p1", 0, "1"), ("p0", 0, "0"), ("p0", 1, "0")]
    assert [{key: value for key, value in row.items() if key != "question"} for row in source] == [
        {"problem_id": "p1", "repeat": 0, "source_id": "7", "source_gold": "x", "right": True},
        {"problem_id": "p0", "repeat": 0, "source_id": "5", "source_gold": "0", "right": False},
        {"problem_id": "p0", "repeat": 1, "source_id": "5", "source_gold": "0", "right": True},
    ]
    table, _ = import_samples("qwen-math", [path], "b", "r", problems=benchmark, by="order")
    assert columns(table, "problem_id", "gold") == [("p0", "0"), ("p1", "1"), ("p1", "1")]
    with refused("unmatched-generations", count=3):
        import_samples("qwen-math", [path], "b", "r", problems=benchmark, by="id")
    with refused("other-problems", problems=2):
        import_samples("qwen-math", [path], "b", "r", problems=problems_of("How many?"), by="order")
    with refused("unmatched-generations", count=2):
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
    with refused("missing-field", field="question"):
        import_samples(
            "jsonl", [path], "b", "r", mapping=parse_mapping("completion=output,gold=answer"), problems=benchmark
        )


def test_a_prompt_that_holds_the_question_is_matched_to_the_longest(tmp_path):
    row = {"doc_id": 0, "target": "5", "arguments": [["Be brief. How many men? Think.", {}]], "resps": [["x"]]}
    path = lines(tmp_path / "a.jsonl", row)
    table, _ = import_samples("lm-eval", [path], "b", "r", problems=problems_of("How many", "How many men?"))
    assert columns(table, "problem_id", "gold") == [("p1", "1")]


def test_problems_with_the_same_question_are_told_by_their_order(tmp_path):
    rows = [{"idx": i, "question": text, "gt": "", "code": ["c"]} for i, text in enumerate(("A?", "B?", "A ?", "A?"))]
    table, _ = import_samples(
        "qwen-math", [lines(tmp_path / "a.jsonl", *rows)], "b", "r", problems=problems_of("B?", "A?", "A?")
    )
    assert columns(table, "problem_id", "repeat") == [("p1", 0), ("p0", 0), ("p2", 0), ("p1", 1)]


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
    with refused("unmatched-generations", count=1):
        import_samples("qwen-math", [path], "b", "r", problems=some)
    table, _ = import_samples("qwen-math", [path], "b", "r", problems=some, allow_missing=True)
    assert columns(table, "problem_id") == [("p1",), ("p0",)]
    assert "Left out: 1 generations of 1 problems: 1" in capsys.readouterr().err
    table, _ = import_samples("qwen-math", [path], "b", "r", problems=some, by="order", allow_missing=True)
    assert columns(table, "problem_id") == [("p0",), ("p1",)]
    with refused("unmatched-generations", count=3):
        import_samples("qwen-math", [path], "b", "r", problems=problems_of("D?"), allow_missing=True)


def test_the_recommended_way_to_match_does_match(tmp_path):
    rows = [{"idx": f"p{i}", "question": "other", "gt": "x", "code": ["c"]} for i in range(2)]
    path, some = lines(tmp_path / "a.jsonl", *rows), problems_of("A?", "B?")
    with pytest.raises(UserError) as caught:
        import_samples("qwen-math", [path], "b", "r", problems=some)
    advised = dict(re.findall(r"--match (\w+), which matches (\d+)", str(caught.value)))
    assert advised.keys() == {"id", "order"}
    for way, matched in advised.items():
        assert len(import_samples("qwen-math", [path], "b", "r", problems=some, by=way)[0]) == int(matched) == 2


def test_a_file_of_another_benchmark_is_refused_without_its_problems_too(tmp_path, capsys):
    rows = [{"idx": i, "question": f"Question {i}?", "gt": str(i), "code": ["\\boxed{1}"]} for i in range(31)]
    with refused("other-benchmark", problems=31):
        import_samples("qwen-math", [lines(tmp_path / "many.jsonl", *rows)], "aime24", "r")
    fractions = [row | {"gt": "\\frac{1}{2}"} for row in rows[:12]] + rows[12:20]
    with refused("other-benchmark", odd=12):
        import_samples("qwen-math", [lines(tmp_path / "words.jsonl", *fractions)], "aime24", "r")
    stored = tmp_path / "demo" / "data" / "benchmarks" / "aime24.parquet"
    tables.write(problems_of("Another?", "Question 3?"), tables.PROBLEM, stored)
    few = lines(tmp_path / "few.jsonl", *rows[:3])
    with refused("other-benchmark"):
        import_samples("qwen-math", [few], "aime24", "r", results=tmp_path)
    import_samples("qwen-math", [lines(tmp_path / "fits.jsonl", *rows[:4])], "aime24", "r", results=tmp_path)
    assert "1 of 4 questions are in" in capsys.readouterr().err
    import_samples("qwen-math", [few], "aime24", "r")
    assert "Not compared with the questions of aime24" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["\\boxed{1}", "\\boxed{2}"], ["0 of 2 (0.0 %)"]),
        (["The answer is 18."] * 3, ["3 of 3 (100.0 %)", "--extraction answer-is finds 3", "WARNING"]),
        (["I see 18."] * 2, ["--extraction last-number finds 2", "WARNING"]),
        (["nothing", *["\\boxed{1}"] * 9], ["1 of 10 (10.0 %)", '… "nothing"', "no rule finds them"]),
    ],
)
def test_completions_without_an_answer_are_never_a_silent_zero(texts, expected):
    sentence = without_answer(texts, "math")
    assert all(phrase in sentence for phrase in expected)
    assert ("WARNING" in sentence) == ("WARNING" in expected)


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


def test_matching_by_order_compares_the_questions_that_a_file_has(tmp_path):
    questions = ["What is 2 + 3?", "Find the area of the square.", "How many apples has Tom?"]
    some = problems_of(*questions)
    same = [{"idx": i, "question": f"Q: {text.upper()}", "gt": "x", "code": ["c"]} for i, text in enumerate(questions)]
    others = [row | {"question": questions[i - 1]} for i, row in enumerate(same)]
    without = [{**row, "question": None} for row in same]
    for rows in (same, without):
        path = lines(tmp_path / "a.jsonl", *rows)
        table, _ = import_samples("qwen-math", [path], "b", "r", problems=some, by="order")
        assert columns(table, "problem_id") == [("p0",), ("p1",), ("p2",)]
    with refused("unmatched-generations", count=3):
        import_samples("qwen-math", [lines(tmp_path / "a.jsonl", *others)], "b", "r", problems=some, by="order")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize(
    "text",
    [
        '{"p": "a", "g": "1"}\n{"p": "b", "g": "2"}\n', '[{"p": "a", "g": "1"}, {"p": "b", "g": "2"}]',
        '[\n {"p": "a",\n  "g": "1"},\n {"p": "b", "g": "2"}]\n', '{"p": ["a", "b"], "g": ["1", "2"]}',
        '{\n "p": ["a", "b"],\n "g": ["1", "2"]\n}\n', '{"0": {"p": "a", "g": "1"}, "1": {"p": "b", "g": "2"}}',
    ],
)  # fmt: skip
def test_one_document_is_read_as_lines_are(tmp_path, text, mark):
    path = tmp_path / "a.json"
    path.write_bytes(mark + text.encode())
    table, _ = import_samples("jsonl", [path], "b", "r", mapping={"completion": "p", "gold": "g"})
    assert columns(table, "completion", "gold") == [("a", "1"), ("b", "2")]


def test_golds_that_are_other_answers_and_problems_without_samples_are_said(tmp_path, capsys):
    source = [{"source_gold": "999"}, {"source_gold": "1.0"}]
    table = pa.Table.from_pylist([{"problem_id": "p0"}, {"problem_id": "p1"}])
    print_differences(table, source, problems_of("A?", "B?", "C?"))
    written, other, missing = capsys.readouterr().out.rstrip("\n").split("\n")
    assert re.findall(r"\d+", written)[0] == "1" and "p1" not in other
    assert re.findall(r"(\d+) golds are other.*'(\w+)' for '(\w+)' of (\w+)", other) == [("1", "999", "0", "p0")]
    assert re.findall(r"\d+", missing) == ["1", "3"]
