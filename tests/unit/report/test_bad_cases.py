"""Bad completions by kind, counted by hand."""

from report_runs import graded_row, make_run

from analysis.measures import bad_cases
from analysis.report.sections import wrong_answers

TEXTS = {
    "a": ("wrong", "3 + 4 = 8, so \\boxed{8}"),
    "b": ("wrong", "3 + 4 = 7, so \\boxed{6}"),
    "c": ("no_answer", "3 + 4 = 8"),
    "d": ("truncated", "3 + 4 = 8 and"),
    "e": ("correct", "3 + 4 = 8, no, 7: \\boxed{7}"),
    "f": ("format_error", "seven"),
    "g": ("wrong", "it is \\boxed{9}"),
}
ROWS = [graded_row(0, problem, 0, verdict, completion=text) for problem, (verdict, text) in TEXTS.items()]


def test_counts_by_hand() -> None:
    run = make_run(ROWS)
    counts, examples = bad_cases.count(run)
    row = counts.iloc[0]
    assert (row["completions"], row["no_answer"], row["format_error"], row["truncated"]) == (7, 1, 1, 1)
    assert (row["wrong"], row["searched"], row["arithmetic_error"]) == (3, 3, 1)
    assert {example.kind for example in examples} == set(bad_cases.KINDS)
    error = next(example for example in examples if example.kind == "arithmetic_error")
    assert (error.problem_id, error.evidence) == ("a", "3 + 4 = 8")
    texts = wrong_answers.bad_cases_table([run], counts).display.iloc[0]
    assert texts["with an arithmetic error"] == "1 (33.3 %)" and texts["no answer"] == "1 (14.3 %)"


def test_truncation_is_unknown_without_finish_reasons() -> None:
    ends_unknown = [
        row | {"benchmark": "words", "finish_reason": None} for row in ROWS if row["verdict"] != "truncated"
    ]
    run = make_run([*ROWS, *ends_unknown])
    counts, _ = bad_cases.count(run)
    assert wrong_answers.bad_cases_table([run], counts).display["truncated"].tolist() == ["1 (14.3 %)", "–"]
    assert counts["truncated"].isna().tolist() == [False, True]


def test_how_many_are_searched_is_bounded_and_stated(monkeypatch) -> None:
    monkeypatch.setattr(bad_cases, "MAX_SEARCHED", 2)
    counts, _ = bad_cases.count(make_run(ROWS))
    assert (counts.iloc[0]["wrong"], counts.iloc[0]["searched"]) == (3, 2)


def test_nothing_bad() -> None:
    run = make_run([graded_row(0, "a", 0, "correct")])
    counts, examples = bad_cases.count(run)
    assert (
        examples == []
        and wrong_answers.bad_cases_table([run], counts).display.iloc[0]["with an arithmetic error"] == "–"
    )
