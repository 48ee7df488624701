"""`crosszero grade`: from files to scores, once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli import grade, graph
from cli.main import crosszero
from contracts import provenance, tables
from contracts.paths import ResultsFolder
from eval import grade_generations as module
from eval.grade_generations import GradedGenerations, Request, grade_generations
from eval.importers import recognise_benchmark
from tests.unit.generations import lines, problems_of
from tests.user_errors import refused

QUESTIONS = [f"How many are {number} and nothing else?" for number in range(3)]  # p0 … p2 with the answers 0 … 2


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ResultsFolder:
    """Results with the problems of two benchmarks, the only ones that are looked at."""
    folder = ResultsFolder(tmp_path / "results" / "demo")
    tables.write(problems_of(*QUESTIONS), tables.PROBLEM, folder.problems("benchmarks", "gsm8k"))
    tables.write(problems_of("What is it?"), tables.PROBLEM, folder.problems("benchmarks", "aime24"))
    monkeypatch.setattr(recognise_benchmark, "_benchmarks_to_try", lambda: [["gsm8k", "aime24"], []])
    configured = graph.configured() | {"results": str(tmp_path / "results")}
    monkeypatch.setattr(graph, "configured", lambda **_: configured)
    return folder


def qwen_row(number: int, *answers: object, **more: Any) -> dict[str, Any]:
    code = [f"It is \\boxed{{{answer}}}." if isinstance(answer, int) else answer for answer in answers]
    return {"idx": number, "question": QUESTIONS[number], "gt": "x", "code": code} | more


def write(path: Path, *rows: dict[str, Any]) -> tuple[str]:
    path.parent.mkdir(exist_ok=True)
    lines(path, *rows)
    return (str(path),)


def by_grader(graded: GradedGenerations) -> dict[str, float]:
    return {line.grader: line.value for line in graded.lines}


def test_scores_by_every_grader_and_the_file_s_own(tmp_path: Path, results: ResultsFolder) -> None:
    rows = [qwen_row(i, i, "I do not know", score=[True, False]) for i in range(3)]
    graded = grade_generations(Request(write(tmp_path / "mine.jsonl", *rows), results, extraction="none"))
    assert by_grader(graded) == dict.fromkeys(["math-verify", "qwen-rules", "strict", "the file's verdict"], 0.5)
    line = graded.lines[0]
    assert (line.problems, line.repeats, line.whole, line.silent) == (3, 2, 3, 0.5) and line.low < 0.5 < line.high
    folder = results.run(graded.run)
    assert set(folder.other_graders) == {"qwen-rules", "strict"}
    assert tables.read(folder.scores, tables.SCORE)["avg_at_k"].to_pylist() == [0.5]
    record = provenance.read(folder.samples / "step-0" / "gsm8k.parquet")
    assert record["layout"] == "qwen-math" and list(record["imported"]) == [str(tmp_path / "mine.jsonl")]


@pytest.mark.slow
def test_truncated_completions_are_counted_apart(tmp_path: Path, results: ResultsFolder) -> None:
    reasons, texts = ["length", "stop", "length", "stop"], ["so far", "no idea", "\\boxed{1}", "\\boxed{1}"]
    rows = [{"question": QUESTIONS[0], "completions": texts, "finish_reason": reasons}]
    graded = grade_generations(Request(write(tmp_path / "mine.jsonl", *rows), results, extraction="none"))
    assert (graded.lines[0].truncated, graded.lines[0].silent) == (0.5, 0.25)
    record = results.run(graded.run).path / "imported.json"
    stored = json.loads(record.read_text())
    stored["lines"] = [line[:-1] for line in stored["lines"]]  # an earlier release's
    record.write_text(json.dumps(stored | {"versions": {"math": "0"}}))
    assert grade_generations(Request(write(tmp_path / "mine.jsonl", *rows), results, extraction="none")) == graded


@pytest.mark.parametrize(("answers", "is_said"), [((1, 1), True), ((1, 2), False), ((1,), False)])
def test_copies_of_completions_are_noted(
    tmp_path: Path, results: ResultsFolder, answers: tuple[int, ...], is_said: bool
) -> None:
    rows = [qwen_row(i, *answers) for i in range(3)]
    graded = grade_generations(Request(write(tmp_path / "mine.jsonl", *rows), results, extraction="none"))
    assert any("same text" in note for note in graded.notes) == is_said


@pytest.mark.parametrize(
    ("golds", "noted"), [((0, 1, 2), ""), (("0.0", "x=1", "\\boxed{2}"), ""), ((0, 7, 2), "'7' for '1' of p1")]
)
def test_golds_that_are_other_answers_are_noted(
    tmp_path: Path, results: ResultsFolder, golds: tuple[object, ...], noted: str
) -> None:
    rows = [qwen_row(i, i, gt=str(gold)) for i, gold in enumerate(golds)]
    graded = grade_generations(Request(write(tmp_path / "mine.jsonl", *rows), results, extraction="none"))
    assert len(graded.notes) == bool(noted) and noted in "".join(graded.notes)
    assert by_grader(graded)["math-verify"] == 1


def test_the_same_again_is_read_and_another_option_is_another_run(
    tmp_path: Path, results: ResultsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write(tmp_path / "a.jsonl", *(qwen_row(i, i) for i in range(3)))
    first = grade_generations(Request(files, results))
    monkeypatch.setattr(module, "_grade_part", None)  # cannot be called
    assert grade_generations(Request(files, results)) == first
    (tmp_path / "a.jsonl").rename(tmp_path / "b.jsonl")
    with pytest.raises(TypeError):
        grade_generations(Request((str(tmp_path / "b.jsonl"),), results, extraction="none"))


def test_a_name_of_one_s_own(tmp_path: Path, results: ResultsFolder) -> None:
    files = write(tmp_path / "a.jsonl", *(qwen_row(i, i) for i in range(3)))
    options = {"name": "mine/first", "benchmark": "gsm8k"}
    assert grade_generations(Request(files, results, **options)).run == "imported/mine/first"
    write(tmp_path / "a.jsonl", *(qwen_row(i, 0) for i in range(3)))
    with refused("name-in-use", name="imported/mine/first"):
        grade_generations(Request(files, results, **options))
    results.run("imported/half").samples.mkdir(parents=True)
    with refused("name-in-use"):
        grade_generations(Request(files, results, name="half", benchmark="gsm8k"))


@pytest.mark.slow
def test_part_of_a_benchmark_says_so(tmp_path: Path, results: ResultsFolder) -> None:
    graded = grade_generations(Request(write(tmp_path / "a.jsonl", qwen_row(0, 0), qwen_row(2, 2)), results))
    assert (graded.lines[0].problems, graded.lines[0].whole) == (2, 3) and "2 of its 3" in graded.notes[0]
    assert "2 of 3 × 1" in grade.summary(graded)
    assert tables.read(results.run(graded.run).scores, tables.SCORE)["subset"].to_pylist() == ["2 of 3"]
    graded = grade_generations(Request(write(tmp_path / "b.jsonl", qwen_row(0, 0), qwen_row(1, 2)), results))
    assert tables.read(results.run(graded.run).scores, tables.SCORE)["subset"].to_pylist() == ["first 2 of 3"]


def test_problems_with_different_numbers_of_completions(tmp_path: Path, results: ResultsFolder) -> None:
    rows = [qwen_row(0, 0, 0), qwen_row(1, 1), qwen_row(2, 2)]
    with refused("missing-samples", counts={1: 2, 2: 1}):
        grade_generations(Request(write(tmp_path / "a.jsonl", *rows), results))


def test_files_of_the_same_benchmark_are_repeats(tmp_path: Path, results: ResultsFolder) -> None:
    for name in "ab":
        write(tmp_path / "in" / f"{name}.jsonl", *(qwen_row(i, i) for i in range(3)))
    (line, *_) = grade_generations(Request((str(tmp_path / "in"),), results)).lines
    assert (line.problems, line.repeats) == (3, 2)


@pytest.mark.slow
def test_where_no_answer_is_boxed_it_is_looked_for_elsewhere(tmp_path: Path, results: ResultsFolder) -> None:
    files = write(tmp_path / "a.jsonl", *(qwen_row(i, f"The answer is {i}.") for i in range(3)))
    graded = grade_generations(Request(files, results))
    assert (graded.extraction, by_grader(graded)["math-verify"]) == ("answer-is", 1.0)
    assert by_grader(grade_generations(Request(files, results, extraction="none")))["math-verify"] == 0.0


def run(*arguments: str) -> Result:
    return CliRunner().invoke(crosszero, ["grade", *arguments], prog_name="crosszero", catch_exceptions=False)


@pytest.mark.slow
def test_the_command_ends_with_its_page_the_second_time_too(tmp_path: Path, results: ResultsFolder) -> None:
    files = write(tmp_path / "mine.jsonl", *(qwen_row(i, i) for i in range(3)))
    first, second = run(*files), run(*files)
    assert first.exit_code == 0 and first.stdout == second.stdout
    page = Path(first.stdout.splitlines()[-1].removeprefix("page:").strip())
    assert page.is_file() and "mine.jsonl" in page.read_text()


def test_options_that_cannot_be(tmp_path: Path, results: ResultsFolder) -> None:
    files = write(tmp_path / "a.jsonl", {"out": "x", "problem": QUESTIONS[0]})
    with refused("not-generations"):
        run(*files)
    with refused("unknown-field"):
        run(*files, "--map", "completions=out")
    assert run().exit_code == run(*files, "--map", "out").exit_code == 2
    assert json.loads((tmp_path / "a.jsonl").read_text())["out"] == "x"
