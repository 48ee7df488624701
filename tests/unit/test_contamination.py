"""The contamination probe: beginnings of questions, their twins, and what the report says."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.reference import RELEASES
from analysis.report.report_data import RunFacts
from analysis.report.sections import contamination as contamination_section
from eval import benchmark, contamination
from recipes import models
from system.yaml_files import read_yaml
from tasks import dataset_specs
from tasks.problems import Problem, canonical, to_table

QUESTION = "Mia has 5 apples. How many are left?"


def test_a_question_is_cut_between_words() -> None:
    assert contamination.split_question(QUESTION, 40) == ("Mia has 5", " apples. How many are left?")
    assert contamination.split_question(QUESTION, 80) == ("Mia has 5 apples. How many", " are left?")
    assert contamination.split_question("Whatsis?", 40) == ("Whatsis?", "")


@given(st.text(), st.sampled_from(contamination.SHARES))
def test_the_parts_of_a_question_are_the_whole(question: str, share: int) -> None:
    start, rest = contamination.split_question(question, share)
    assert start + rest == question
    assert len(start) <= len(question) * share / 100 or not any(c.isspace() for c in start.strip())


@pytest.mark.parametrize(
    ("completion", "completed"),
    [
        (" are left? 3", True), ("are  left?\n\\boxed{3}", True), (" are left", False), (" were left?", False),
        ("", False),
    ],
)  # fmt: skip
def test_the_rest_counts_word_for_word_whatever_the_white_space(completion: str, completed: bool) -> None:
    assert contamination.completes(completion, " are left?") is completed


@pytest.mark.slow
def test_twins_are_as_long_as_the_questions_and_share_none_with_them() -> None:
    questions = [QUESTION, "x " * 200, "What is 1+1?"]
    twins = contamination.twin_questions(questions, seed=0)
    for question, (text, answer) in zip(questions, twins, strict=True):
        assert len(question) <= len(text) <= len(question) + 300 and answer.lstrip("-").isdigit()
    assert twins == contamination.twin_questions(questions, seed=0) != contamination.twin_questions(questions, seed=1)
    pool = [text for text, _ in contamination.twin_questions(["x"] * 50, seed=0)]
    assert not {canonical(text) for text in pool} & {
        canonical(text) for text, _ in contamination.twin_questions(pool, seed=0)
    }


def test_every_problem_has_its_beginnings_and_those_of_its_twin() -> None:
    whole = to_table([Problem("p1", "arithmetic", QUESTION, "3", {"level": 1})])
    rows = {row["problem_id"]: row for row in contamination.partial_problems(whole, seed=0)}
    assert set(rows) == {f"p1@{kind}-{share}" for kind in ("benchmark", "twin") for share in (40, 60, 80)}
    row = rows["p1@benchmark-40"]
    assert (benchmark.question(row), row["answer"]) == ("Mia has 5", "3")
    assert json.loads(row["meta"]) == {"level": 1, "rest": " apples. How many are left?"}


def probed(own: float, twin: float) -> pd.DataFrame:
    rows = []
    for kind, exact in (("benchmark", own), ("twin", twin)):
        for share in contamination.SHARES:
            values = {f"{name}{end}": exact + more for name in contamination.MEASURES
                      for end, more in (("", 0.0), ("_low", -0.05), ("_high", 0.05))}  # fmt: skip
            rows.append({"step": 0, "benchmark": "math500", "kind": kind, "share": share, "problems": 500, **values})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("own", "twin", "verdict"), [(0.546, 0.06, "read before"), (0.08, 0.06, "cannot tell")])
def test_the_report_sets_the_twin_and_the_dates_beside(own: float, twin: float, verdict: str) -> None:
    from tests.unit.report.report_runs import graded_row, make_run

    run = make_run([graded_row(0, f"p{i}", 0, "correct") for i in range(3)])
    facts = {run.name: RunFacts("trl", "grpo", "qwen2.5-math-7b")}
    assert (
        contamination_section.contamination_table([run], facts) is None and contamination_section.table_cell(run) == "–"
    )
    run = replace(run, contamination=probed(own, twin))
    assert contamination_section.table_cell(run) == f"{100 * own:.1f} (twin {100 * twin:.1f})"
    rows = contamination_section.contamination_table([run], facts)
    assert rows is not None and set(rows.data["verdict"]) == {verdict}
    assert set(rows.data["model_released"]) == {"2024-09-19"} and set(rows.data["benchmark_released"]) == {"2021-03-05"}


def test_dates_have_sources_and_unknown_says_unknown() -> None:
    for entries in read_yaml(RELEASES).values():
        assert all(set(entry) == {"date", "source"} and entry["source"] for entry in entries.values())
    assert (
        contamination_section.released("models", "llama-9")
        == contamination_section.released("benchmarks", "new")
        == "unknown"
    )
    assert set(read_yaml(RELEASES)["benchmarks"]) <= set(dataset_specs.entries())
    assert {
        contamination_section.released("models", name) for name in models.library() if "hub" in models.find(name)
    } != {"unknown"}
