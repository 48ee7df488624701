"""Scores of a run from its graded samples, and refusal of what is incomplete."""

import pandas as pd
import pyarrow as pa
import pytest

from contracts import tables
from eval.score import check_complete, main, score_row, score_run
from tests.user_errors import refused


def graded(step=0, verdicts=("correct", "wrong", "truncated", "correct"), **columns):
    rows = []
    for i, verdict in enumerate(verdicts):
        row = dict.fromkeys(tables.GRADED.names)
        row |= {"run": "openr1/demo/seed-0", "step": step, "benchmark": "amc23", "problem_id": f"p{i // 2}"}
        row |= {
            "repeat": i % 2,
            "protocol": "greedy-boxed",
            "verdict": verdict,
            "grader": "strict",
            "completion_tokens": 10 * i,
        }
        row |= {"answer": None if verdict == "truncated" else str(i), "gold": "7"}
        row |= {"finish_reason": "length" if verdict == "truncated" else "stop"}
        rows.append(row | {name: values[i] for name, values in columns.items()})
    return pd.DataFrame(rows)


def save(frame, path):
    tables.write(pa.Table.from_pandas(frame, schema=tables.GRADED), tables.GRADED, path)


def test_score_by_hand():
    row = score_row(graded())
    assert (row["n_problems"], row["k_repeats"], row["avg_at_k"]) == (2, 2, 0.5)
    assert row["ci_low"] < 0.5 < row["ci_high"]
    assert row["pass_at_k"] == 1.0
    assert row["maj_at_k"] == 0.75  # a tie on the first problem, no vote against the right answer on the second
    assert row["truncated_rate"] == 0.25
    assert row["avg_at_k_completed"] == pytest.approx(2 / 3)
    assert (row["completion_tokens_mean"], row["completion_tokens_max"]) == (15.0, 30.0)
    assert [row[f"n_{v}"] for v in tables.VERDICTS] == [2, 1, 0, 1, 0, 0]


def test_the_task_says_which_answers_are_one_in_a_vote():
    votes = graded(verdicts=("wrong", "wrong", "wrong"), answer=["1,000", "1000", "7"], problem_id=["p0"] * 3)
    votes = votes.assign(verdict=["wrong", "wrong", "correct"], repeat=[0, 1, 2])
    assert score_row(votes)["maj_at_k"] == 0.0  # mathematics: 1,000 twice
    assert score_row(votes.assign(benchmark="countdown_demo"))["maj_at_k"] == pytest.approx(1 / 3)  # three expressions


@pytest.mark.parametrize(("protocol", "ties", "expected"), [
    ("imported:qwen-math", "first", 0.5), ("imported:jsonl", "chance", 0.75), ("greedy-boxed", "chance", 0.75),
])  # fmt: skip
def test_ties_of_maj_at_k_are_broken_as_the_source_breaks_them(protocol, ties, expected):
    tied = graded(verdicts=("wrong", "correct", "correct", "correct")).assign(protocol=protocol)
    row = score_row(tied)
    assert (row["maj_ties"], row["maj_at_k"]) == (ties, expected)
    assert score_row(tied, "chance")["maj_at_k"] == 0.75
    assert row["maj_low"] < row["maj_at_k"] < row["maj_high"]
    assert row["pass_low"] < row["pass_at_k"] == row["pass_high"] == 1.0


def test_the_command_prints_pass_and_maj_with_intervals(tmp_path, capsys, monkeypatch):
    save(graded(), tmp_path / "graded" / "step-0" / "amc23.parquet")
    monkeypatch.setattr("sys.argv", ["score", *("--graded", str(tmp_path / "graded")), "--ties", "first",
                                     "--output", str(tmp_path / "scores.parquet")])  # fmt: skip
    main()
    head, score, _, *measures = capsys.readouterr().out.splitlines()
    assert "protocol" in head and "amc23" in score
    lines = [line.split() for line in measures]
    assert [line[0] for line in lines] == ["pass@1", "pass@2", "maj@2"]
    assert all("[" in "".join(line) for line in lines) and "first" in lines[-1][2]
    (row,) = tables.read(tmp_path / "scores.parquet", tables.SCORE).to_pylist()
    assert row["maj_ties"] == "first"


def test_what_is_unknown_stays_null():
    row = score_row(graded(finish_reason=[None] * 4, completion_tokens=[None] * 4))
    assert row["truncated_rate"] is row["avg_at_k_completed"] is row["completion_tokens_mean"] is None


def test_score_run_reads_all_steps(tmp_path):
    for step in (0, 20):
        save(graded(step), tmp_path / f"step-{step}" / "amc23.parquet")
    scores = score_run(tmp_path)
    assert scores.schema == tables.SCORE
    assert scores.column("step").to_pylist() == [0, 20]


def test_a_step_that_lacks_what_another_has_is_refused(tmp_path):
    save(graded(0), tmp_path / "step-0" / "amc23.parquet")
    save(graded(20).iloc[:2], tmp_path / "step-20" / "amc23.parquet")
    with refused("missing-samples", count=2):
        score_run(tmp_path)


def test_problems_that_nobody_delivered_are_named(tmp_path):
    save(graded(0), tmp_path / "graded" / "step-0" / "amc23.parquet")
    rows = [dict.fromkeys(tables.PROBLEM.names) | {"problem_id": f"p{i}"} for i in range(3)]
    tables.write(pa.Table.from_pylist(rows, schema=tables.PROBLEM), tables.PROBLEM, tmp_path / "problems/amc23.parquet")
    with refused("missing-samples", count=2):
        score_run(tmp_path / "graded", tmp_path / "problems")


def test_incomplete_tables_are_refused():
    frame = graded()
    for broken, code, facts in (
        (frame.iloc[:0], "no-samples", {}),
        (frame.iloc[:3], "missing-samples", {"count": 1}),
        (pd.concat([frame, frame.iloc[:1]]), "duplicate-samples", {"count": 1}),
        (frame.assign(verdict=["correct", None, "right", "wrong"]), "missing-verdicts", {"count": 2}),
    ):
        with refused(code, **facts):
            check_complete(broken, "x.parquet", ["p0", "p1"], 2)
    with refused("other-problems", count=1):
        check_complete(frame, "x.parquet", ["p0"], 2)
    with refused("too-many-samples"):
        check_complete(frame, "x.parquet", ["p0", "p1"], 1)


def test_an_empty_folder_is_refused(tmp_path):
    with refused("no-samples"):
        score_run(tmp_path)
