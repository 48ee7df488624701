"""A part of a benchmark: which problems, what is recorded, that it is complete and never compared with the whole."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis import comparability
from contracts import provenance, tables
from eval import grade, score, subset
from eval.subset import Subset
from tests.user_errors import refused

WHOLE = 6


def problems() -> pa.Table:
    message = {"role": "user", "content": "What is 2+2?"}
    rows = [
        {"problem_id": f"p{n}", "task": "arithmetic", "messages": [message], "answer": "4", "meta": "{}"}
        for n in range(WHOLE)
    ]
    return pa.Table.from_pylist(rows, tables.PROBLEM)


def samples(names: list[str]) -> pa.Table:
    rows = [
        {
            "run": "models/mine", "step": 0, "benchmark": "arithmetic_words", "problem_id": name, "repeat": 0,
            "seed": 1, "prompt": "?", "completion": "\\boxed{4}", "finish_reason": "stop", "prompt_tokens": 1,
            "completion_tokens": 3, "gold": "4", "protocol": "demo",
        }
        for name in names
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, tables.SAMPLE)


def ids(table: pa.Table) -> list[str]:
    names: list[str] = table["problem_id"].to_pylist()
    return names


@pytest.mark.parametrize("part", [Subset(2), Subset(2, seed=0), Subset(2, seed=1)])
def test_the_same_problems_each_time_in_their_order(part: Subset) -> None:
    chosen = ids(part.rows(problems()))
    assert chosen == ids(part.rows(problems())) == sorted(chosen) and len(chosen) == 2
    record = {"subset": part.record(problems())}
    assert subset.from_record(record) == part and str(WHOLE) in subset.label(record)
    assert part.seed is not None or chosen == ["p0", "p1"]


def test_a_limit_beyond_the_benchmark_is_the_whole() -> None:
    assert ids(Subset(99).rows(problems())) == ids(Subset(99, seed=0).rows(problems())) == ids(problems())
    assert Subset(WHOLE).record(problems()) is None and subset.label({"subset": None}) == ""


def test_contradicting_options_are_refused() -> None:
    assert subset.choose(None, None) is None and subset.choose(5, None) == Subset(5)
    assert subset.choose(None, 5) == Subset(5, 0) and subset.choose(None, 5, 3) == Subset(5, 3)
    for wrong, code in (((1, 1, None), "contradicting-options"), ((1, None, 0), "needless-option")):
        with refused(code):
            subset.choose(*wrong)
    with refused("argument-out-of-range"):
        subset.choose(0, None)


def graded_part(folder: Path, names: list[str], part: Subset | None = None) -> Path:
    """Samples of these problems as they come from generation, graded."""
    name = "arithmetic_words.parquet"
    tables.write(problems(), tables.PROBLEM, folder / "data" / name)
    tables.write(samples(names), tables.SAMPLE, folder / "samples/step-0" / name)
    record = {"subset": part.record(problems()) if part else None, "protocol": {"name": "demo", "prompt": "boxed"}}
    provenance.write(folder / "samples/step-0" / name, **record)
    grade.grade_file(folder / "samples/step-0" / name, folder / "graded/step-0" / name, folder / "data", "none", None)
    return folder / "graded"


def test_what_was_requested_is_delivered_and_graded_and_the_score_says_of_which_part(tmp_path: Path) -> None:
    graded = graded_part(tmp_path, ["p0", "p1"], Subset(2))
    (row,) = score.score_run(graded, tmp_path / "data").to_pylist()
    assert (row["n_problems"], row["subset"]) == (2, "first 2 of 6")
    with refused("missing-samples"):
        graded_part(tmp_path / "less", ["p0"], Subset(2))
    with refused("missing-samples"):  # not recorded as a part
        graded_part(tmp_path / "unrecorded", ["p0", "p1"])
    with refused("missing-samples"):  # others of the same number
        graded_part(tmp_path / "others", ["p0", "p2"], Subset(2))


def result(names: list[str], part: Subset | None) -> comparability.Result:
    frame: pd.DataFrame = samples(names).to_pandas().assign(grader="g")
    return comparability.Result(frame, {"subset": part.record(problems()) if part else None})


def test_a_part_is_compared_with_the_same_part_alone() -> None:
    first, whole = result(["p0", "p1"], Subset(2)), result(ids(problems()), None)
    assert comparability.differences(first, result(["p0", "p1"], Subset(2))) == []
    for other in (whole, result(["p0", "p1", "p2"], Subset(3)), result(["p0", "p1"], Subset(2, seed=7))):
        assert comparability.differences(first, other) and comparability.differences(
            other, first, ["prompt", "protocol"]
        )


def test_scores_of_earlier_releases_are_whole(tmp_path: Path) -> None:
    scores = pa.Table.from_pylist([{"run": "x"}], tables.SCORE).drop_columns(["subset"])
    pq.write_table(scores, tmp_path / "scores.parquet")
    assert tables.read(tmp_path / "scores.parquet", tables.SCORE)["subset"].to_pylist() == [None]
