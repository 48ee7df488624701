"""The contamination probe: beginnings of questions, their twins, and what the report says."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.reference import RELEASES
from analysis.report.report_data import RunFacts
from analysis.report.sections import contamination as contamination_section
from eval import benchmark, contamination
from recipes import models
from system.yaml_files import read_yaml
from tasks import dataset_specs
from tasks.problems import Problem, to_table

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


NUMBERS = "Mia has 5 apples and eats 2 of them, then finds 7 more and gives 3 to Tom. How many are left?"


@pytest.mark.slow
def test_a_twin_has_as_much_left_to_say_and_new_numbers_where_its_question_has() -> None:
    questions = [NUMBERS, "x " * 200, "Prove that the sum of two even numbers is even."]
    twins = contamination.Twin(questions, seed=0)
    for question in questions:
        for share in contamination.SHARES:
            start, rest = contamination.split_question(question, share)
            twin_start, left, answer = twins.like(start, rest)
            assert len(left.split()) == len(rest.split()) and answer.lstrip("-").isdigit()
            assert abs(len(twin_start) - len(start)) < 20
            assert contamination.is_specific(twin_start, left) or not contamination.is_specific(start, rest)
    first, again, other = (contamination.Twin(questions, seed).like("Mia has", " 5 and 7") for seed in (0, 0, 1))
    assert first == again != other


def test_what_a_set_phrase_completes_is_not_specific() -> None:
    assert not contamination.is_specific("What is $2 + 3$?", " Express your answer as a common fraction.")
    assert not contamination.is_specific("A has 5 and 7.", " How many are 5 and 7?")
    assert contamination.is_specific("Mia has 5 apples", " and eats 2 of them, then finds 7 more")


def completed_by(count: int, questions: int = 100) -> list[dict[str, object]]:
    """Measures of a model that completes so many of the benchmark's questions, all of them specific, and no twin."""
    rows, metas = [], {}
    for number in range(questions):
        for kind in contamination.KINDS:
            name = f"p{number}@{kind}-60"
            metas[name] = {"rest": " 2 and 7", "specific": True}
            completes = kind == contamination.BENCHMARK and number < count
            rows.append({"problem_id": name, "completion": " 2 and 7" if completes else " 8", "verdict": "wrong"})
    return contamination.measure_completion(pd.DataFrame(rows), metas)


def test_pairs_are_tested_and_the_power_is_that_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contamination, "rouge_l", lambda completion, rest: 0.0)  # of a package of the eval environment
    own = next(row for row in completed_by(6) if row["kind"] == contamination.BENCHMARK)
    assert (own["pairs"], own["more"], own["fewer"], own["p_value"]) == (100, 6, 0, pytest.approx(2 / 2**6))
    share = contamination.smallest_read_share(100, 0.05)
    assert share is not None and stats.binom.sf(5, 100, share) == pytest.approx(0.8)
    assert contamination.smallest_read_share(5, 0.05) is None


def test_every_problem_has_its_beginnings_and_those_of_its_twin() -> None:
    whole = to_table([Problem("p1", "arithmetic", QUESTION, "3", {"level": 1})])
    rows = {row["problem_id"]: row for row in contamination.partial_problems(whole, seed=0)}
    assert set(rows) == {f"p1@{kind}-{share}" for kind in ("benchmark", "twin") for share in (40, 60, 80)}
    row = rows["p1@benchmark-40"]
    assert (benchmark.question(row), row["answer"]) == ("Mia has 5", "3")
    assert json.loads(row["meta"]) == {"level": 1, "rest": " apples. How many are left?", "specific": False}


def probed(own: float, twin: float) -> pd.DataFrame:
    rows = []
    for kind, exact in (("benchmark", own), ("twin", twin)):
        for share in contamination.SHARES:
            values = {f"{name}{end}": exact + more for name in contamination.MEASURES
                      for end, more in (("", 0.0), ("_low", -0.05), ("_high", 0.05))}  # fmt: skip
            test = {"pairs": 300, "more": round(300 * (own - twin)), "fewer": 0}
            test["p_value"] = min(1.0, 2 / 2 ** test["more"])
            rows.append(
                {"step": 0, "benchmark": "math500", "kind": kind, "share": share, "problems": 500, **values, **test}
            )
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("own", "twin", "verdict"), [(0.546, 0.06, "read before"), (0.07, 0.06, "cannot tell")])
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
