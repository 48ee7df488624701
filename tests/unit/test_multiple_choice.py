"""Multiple choice: rows, shuffled options, letters, and what other harnesses asked."""

from __future__ import annotations

import csv
import json
import string
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import tables
from eval.grade import grade_benchmark
from eval.importers.problem_matching import match
from grading import Item, grade
from tasks import option_letters, registry
from tasks.dataset_specs import Entry, find
from tasks.load_problems import load
from tasks.multiple_choice.rows import convert
from tasks.problems import Problem, to_table
from tasks.row_sampling import sample_rows
from tests.hostile_text import MATHS, TEXTS
from tests.user_errors import refused

TASK = registry.get("multiple_choice")
OPTIONS = ["9", "7", "8 m/s", r"$\frac{1}{2}$"]
META = {"options": OPTIONS, "order": [0, 1, 2, 3], "seed": None}
LETTERS = "ABCD"


def verdict(answer: str, gold: str = "B", grader: str = "") -> str | None:
    return TASK.verify(answer, gold, META, grader=grader)


@pytest.mark.parametrize(
    "answer",
    ["B", " B ", "(B)", "B.", "B)", "B:", "**B**", r"\text{B}", r"\textbf{(B)}", "$B$", r"$\mathrm{B}$", "B. 7",
     "(B) 7", "B. ", r"\text{(B) 7}", "B: $7$.", "B) 7."],
)  # fmt: skip
def test_the_letter_is_right_however_it_is_set(answer: str) -> None:
    assert verdict(answer) == "correct"


@pytest.mark.parametrize(
    "answer",
    ["b", "A", "C", "B or C", "B, C", "BC", "B and C", "not B", "7", "B. 9", "(B) 9", "option B is wrong", "", "E", "Z",
     "{B}{C}", "\\boxed{B", "Β", "Ｂ", "B\nC", "((B))", "AB", "B?"],
)  # fmt: skip
def test_all_else_is_wrong(answer: str) -> None:
    assert verdict(answer) == "wrong"


def test_strict_takes_the_letter_and_nothing_else() -> None:
    assert verdict("B", grader="strict") == "correct"
    assert {verdict(answer, grader="strict") for answer in ("(B)", "B.", " B", "B. 7", "b", "C")} == {"wrong"}


@pytest.mark.parametrize("gold", ["", "E", "b", "AB", "(B)", "7"])
def test_a_gold_answer_that_is_no_option_is_ungradable(gold: str) -> None:
    assert verdict("B", gold) == verdict("B", gold, "strict") == "ungradable"


@pytest.mark.parametrize(
    ("completion", "rule", "expected"),
    [
        (r"so \boxed{B}", "none", "correct"),
        (r"\boxed{A} no, \boxed{\text{(B)}}.", "none", "correct"),
        (r"<think>\boxed{C}</think> \boxed{B}", "none", "correct"),
        (r"\boxed{B \text{ or } C}", "none", "wrong"),
        (r"\boxed{7}", "none", "wrong"),
        ("Answer: B", "none", "no_answer"),
        ("Answer: B", "answer-line", "correct"),
        ("**Answer:** (B)", "answer-line", "correct"),
        ("Answer: B or C", "answer-line", "wrong"),
        ("The answer is (B).", "answer-is", "correct"),
        ("The answer is B. 7", "answer-is", "correct"),
        ("The answer is (B) or (C).", "answer-is", "wrong"),
        ("<answer>B</answer>", "answer-tag", "correct"),
        ("I would say B", "answer-is", "no_answer"),
        ("", "none", "no_answer"),
    ],
)
@pytest.mark.parametrize("grader", ["math-verify", "qwen-rules"])
def test_completions_are_graded_as_those_of_every_benchmark(
    completion: str, rule: str, expected: str, grader: str
) -> None:
    (judged,) = grade([Item("multiple_choice", "B", completion, "stop", META, rule)], grader=grader)
    assert judged.verdict == expected and judged.grader.startswith("multiple_choice verifier")


def test_the_strict_grader_and_a_cut_completion() -> None:
    items = [Item("multiple_choice", "B", text, "stop", META) for text in (r"\boxed{B}", r"\boxed{(B)}")]
    assert [judged.verdict for judged in grade(items, grader="strict")] == ["correct", "wrong"]
    cut = Item("multiple_choice", "B", "Answer: B", "length", META, "answer-line")
    assert grade([cut])[0].verdict == "truncated"


@pytest.mark.slow
@given(st.text(max_size=60) | st.sampled_from([*TEXTS.values(), *MATHS]), st.sampled_from(LETTERS))
def test_only_an_answer_that_begins_with_the_letter_is_right(text: str, gold: str) -> None:
    verdict = TASK.verify(text, gold, META)
    assert verdict in ("correct", "wrong")
    if verdict == "correct":
        assert gold in text and not set(LETTERS.replace(gold, "")) & set(
            option_letters.without_markup(text).split(".")[0]
        )
    assert TASK.verify(text, gold, META, grader="strict") == ("correct" if text == gold else "wrong")


@pytest.mark.parametrize("piece", ["B", "(", "(B)", "$", "**", r"\text{", " ", "B. ", "B. 7", "\n"])
def test_a_million_characters_are_read_at_once(piece: str) -> None:
    start = time.process_time()
    for text in (piece * 10**6, "B. " + piece * 10**6):
        verdict(text)
        TASK.canonical_answer(text)
    assert time.process_time() - start < 2


@pytest.mark.slow
@given(st.text(max_size=40), st.sampled_from(LETTERS), st.sampled_from(["{}", "({})", "{}.", r"\text{{{}}}", "**{}**"]))
def test_a_vote_counts_spellings_of_one_letter_together(text: str, letter: str, form: str) -> None:
    assert TASK.canonical_answer(form.format(letter)) == letter
    assert TASK.canonical_answer(text) == TASK.canonical_answer(TASK.canonical_answer(text))


GPQA_COLUMNS = (
    "Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3", "Record ID",
    "High-level domain", "Subdomain",
)  # fmt: skip


def gpqa(folder: Path, rows: int = 40, order: int = 1) -> list[Problem]:
    """A set of GPQA's form, loaded as the benchmark is."""
    problems = [
        dict(zip(GPQA_COLUMNS, (f'Which is "{n}",\nin words?', f"right {n}", *(f"wrong {n} {k}" for k in range(3)),
                                f"rec{n}", "Physics", "Optics"), strict=True))
        for n in range(rows)
    ][::order]  # fmt: skip
    with (folder / "gpqa.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, GPQA_COLUMNS)
        writer.writeheader()
        writer.writerows(problems)
    spec = {**find("gpqa_diamond").spec, "rows": rows, "files": [{"path": "gpqa.csv"}]}
    return load(Entry("gpqa", spec, "here.yaml"), folder)[0]


def test_options_are_shuffled_and_the_right_letter_moves_with_them(tmp_path: Path) -> None:
    problems = gpqa(tmp_path)
    for number, problem in enumerate(problems):
        source = [f"right {number}", *(f"wrong {number} {k}" for k in range(3))]
        options, order = problem.meta["options"], problem.meta["order"]
        assert options == [source[index] for index in order] and sorted(order) == [0, 1, 2, 3]
        assert options[LETTERS.index(problem.answer or "")] == f"right {number}"
        lines = problem.question.split("\n")
        assert lines[2] == "Options:" and lines[3:7] == [f"{a}. {b}" for a, b in zip(LETTERS, options, strict=True)]
        assert problem.meta["seed"] == 0 and problem.meta["Subdomain"] == "Optics"
    assert {problem.answer for problem in problems} == set(LETTERS)
    assert len({tuple(problem.meta["order"]) for problem in problems}) > 10


def test_the_order_depends_on_seed_and_problem_and_not_on_the_order_of_the_rows(tmp_path: Path) -> None:
    first, turned = gpqa(tmp_path), gpqa(tmp_path, order=-1)
    assert {p.problem_id: p for p in first} == {p.problem_id: p for p in turned}
    columns = find("gpqa_diamond").spec["columns"]
    row = dict.fromkeys(GPQA_COLUMNS, "x") | {"Correct Answer": "yes", "Record ID": "rec"}
    row |= {f"Incorrect Answer {n}": f"no {n}" for n in (1, 2, 3)}
    orders = {tuple(convert(row, 0, "multiple_choice", {**columns, "seed": s}).meta["order"]) for s in range(100)}
    assert len(orders) == 24


def mmlu_rows(count: int = 240) -> list[dict[str, Any]]:
    return [
        {"question_id": 70 + n, "question": f"What is {n}?", "options": [f"{n} {k}" for k in range(3 + n % 8)],
         "answer": string.ascii_uppercase[n % 3], "answer_index": n % 3, "cot_content": "", "category": "math",
         "src": f"source {n % 5}"}
        for n in range(count)
    ]  # fmt: skip


def mmlu(folder: Path, name: str = "mmlu_pro_1k", **changes: Any) -> list[Problem]:
    pq.write_table(pa.Table.from_pylist(mmlu_rows()), folder / "mmlu.parquet")
    spec = find(name).spec
    sample = {**spec["sample"], "source_rows": 240}
    sample.pop("ids_sha256")
    spec = {**spec, "rows": 18, "sample": sample, "files": [{"path": "mmlu.parquet"}], **changes}
    return load(Entry("mmlu", spec, "here.yaml"), folder)[0]


def test_mmlu_pro_keeps_the_published_order_or_shuffles_it(tmp_path: Path) -> None:
    plain, shuffled = mmlu(tmp_path), mmlu(tmp_path, "mmlu_pro_1k_shuffled")
    assert [p.problem_id for p in plain] == [p.problem_id for p in shuffled] and len(plain) == 18
    for one, other in zip(plain, shuffled, strict=True):
        number = int(one.problem_id) - 70
        assert one.answer == string.ascii_uppercase[number % 3] and one.meta["seed"] is None
        assert one.meta["options"] == [f"{number} {k}" for k in range(3 + number % 8)]
        assert one.meta["order"] == sorted(other.meta["order"])
        right = [p.meta["options"][string.ascii_uppercase.index(p.answer or "")] for p in (one, other)]
        assert right[0] == right[1]
    assert any(one.question != other.question for one, other in zip(plain, shuffled, strict=True))


def test_the_sample_is_that_of_pandas_release_after_release() -> None:
    """pandas samples with numpy's RandomState, whose stream is frozen: its algorithm, written out."""
    groups = [f"g{n % 7}{n % 3}" for n in range(500)]
    rng, share = np.random.RandomState(5), []
    for group in sorted(set(groups)):
        places = [index for index, name in enumerate(groups) if name == group]
        share += [places[k] for k in rng.choice(len(places), size=round(len(places) / 4), replace=False)]
    expected = [share[k] for k in np.random.RandomState(5).choice(len(share), size=100, replace=False)]
    assert sample_rows(groups, one_in=4, rows=100, seed=5) == expected


def test_a_source_of_another_size_and_a_sample_that_cannot_be_made(tmp_path: Path) -> None:
    sample = find("mmlu_pro_1k").spec["sample"]
    with refused("other-number-of-rows"):
        mmlu(tmp_path, sample=sample)
    with refused("rows-not-sampled"):
        mmlu(tmp_path, sample={**sample, "source_rows": 240, "by": "source"})
    with refused("other-content"):
        mmlu(tmp_path, sample={**sample, "source_rows": 240})
    with refused("rows-not-sampled"):
        mmlu(tmp_path, rows=100)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer": "K"}, "letter of one of the 3 options, not 'K'"),
        ({"answer": None}, "letter of one of"),
        ({"options": ["one"], "answer": "A"}, "2 to 26 options"),
        ({"options": ["one", " "], "answer": "A"}, "none of them empty"),
    ],
)
def test_a_row_without_options_or_a_right_one_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    rows = [mmlu_rows(1)[0], mmlu_rows(1)[0] | {"question_id": 71} | change]
    (tmp_path / "set.json").write_text(json.dumps(rows))
    spec = {key: value for key, value in find("mmlu_pro_1k").spec.items() if key != "sample"}
    spec |= {"rows": 2, "files": [{"path": "set.json"}]}
    with refused("row-not-as-described"):
        load(Entry("mmlu", spec, "here.yaml"), tmp_path)


def generations(problems: list[Problem], question_key: str, **more: str) -> list[dict[str, Any]]:
    return [
        {"problem_id": p.problem_id, "repeat": 0, "completion": r"\boxed{A}", "gold": "A",
         question_key: f"Question: {TASK.without_instruction(p.question)}\nAnswer:", **more}
        for p in problems
    ]  # fmt: skip


def test_generations_of_other_harnesses_are_matched_by_question_and_options(tmp_path: Path) -> None:
    problems = gpqa(tmp_path, rows=8)
    table = to_table(problems)
    for rows in (generations(problems, "question"), generations(problems, "prompt", question="the question alone")):
        for way in ("question", "id", "order"):
            matched = match(rows, table, way)
            assert [(row["problem_id"], row["gold"]) for row in matched] == [(p.problem_id, p.answer) for p in problems]


@pytest.mark.parametrize("way", ["id", "order"])
def test_letters_of_options_in_another_order_are_refused(tmp_path: Path, way: str) -> None:
    problems = gpqa(tmp_path, rows=8)
    rows = generations(problems, "prompt")
    first = problems[0].meta["options"]
    rows[0]["prompt"] = rows[0]["prompt"].replace(f"A. {first[0]}\nB. {first[1]}", f"A. {first[1]}\nB. {first[0]}")
    with refused("other-options", count=1):
        match(rows, to_table(problems), way)
    with refused("other-options", count=8):
        match([{k: v for k, v in row.items() if k != "prompt"} for row in rows], to_table(problems), way)


def test_stored_samples_are_graded_from_their_problem_table(tmp_path: Path) -> None:
    problems = gpqa(tmp_path, rows=4)
    tables.write(to_table(problems), tables.PROBLEM, tmp_path / "gpqa.parquet")
    stored = {row["problem_id"]: row for row in tables.read(tmp_path / "gpqa.parquet", tables.PROBLEM).to_pylist()}
    answers = {p.problem_id: f"({p.answer}) right {p.problem_id[3:]}" for p in problems}
    rows = [
        {"problem_id": name, "completion": rf"\boxed{{{text}}}", "finish_reason": "stop"}
        for name, text in answers.items()
    ]
    assert {judged.verdict for judged in grade_benchmark(rows, stored, extraction="none")} == {"correct"}
    assert {g.verdict for g in grade_benchmark(rows, stored, extraction="none", grader="strict")} == {"wrong"}


def test_a_mirror_without_gpqa_says_that_access_is_granted_on_request(tmp_path: Path) -> None:
    with refused("missing-from-mirror"):
        load(find("gpqa_diamond"), tmp_path)
