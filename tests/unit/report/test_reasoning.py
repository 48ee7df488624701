"""Right for the right reason: counted by hand, with links to examples, pictures, and a second verifier's verdicts."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from report_runs import graded_row, make_run

from analysis.claims import heldout_measures
from analysis.load_results import load_results
from analysis.measures import reasoning
from analysis.report import build, sample_browser
from analysis.report.sections import right_reasons, second_verifiers
from analysis.results import RunResults
from analysis.statistics.mean_intervals import NotMeasured
from contracts import provenance, tables
from contracts.paths import ResultsFolder, table
from eval import statistics
from eval.benchmark import problems_hash
from tasks.problems import Problem, to_table

SUM = Problem("", "arithmetic", "What is 5+3*4-2?", "15", {"expression": "5+3*4-2"})
TEXTS = {
    "a": ("correct", "5+3*4-2\n5+12-2\n17-2\n15"),
    "b": ("correct", "5+3*4-2\n8*4-2\n15"),
    "c": ("wrong", "5+3*4-2\n5+12-2\n17-2"),
    "d": ("wrong", "8*4-2\n32-2\n30"),
    "e": ("correct", "It is fifteen."),
    "f": ("correct", "Well,\n5+12-2\n15"),
}
MAZE = Problem("m", "maze", "q", "RR", {"width": 4, "height": 4, "goal": [2, 0], "obstacles": [[1, 3], [3, 2]]})


def sums() -> RunResults:
    run = make_run([graded_row(0, name, 0, verdict, completion=text) for name, (verdict, text) in TEXTS.items()])
    run.problem_rows["sums"] = {name: SUM._replace(problem_id=name) for name in TEXTS}
    return run


def mazes() -> RunResults:
    rows = [("RR", "correct"), ("URR", "wrong"), ("D", "wrong"), ("RR", "correct")]
    run = make_run([graded_row(0, "m", n, verdict, answer=moves) for n, (moves, verdict) in enumerate(rows)])
    run.problem_rows["sums"] = {"m": MAZE}
    return run


def test_kinds_and_shares_by_hand() -> None:
    counts, examples = reasoning.count(sums())
    row = counts.iloc[0]
    assert [row[kind] for kind in reasoning.KINDS] == [2, 1, 1, 1, 1, 0]
    assert row["accuracy_share"] == pytest.approx(4 / 6) and row["of_right_share"] == pytest.approx(2 / 3)
    assert row["right_wrong_low"] < 1 / 6 < row["right_wrong_high"]
    assert row["checkable"] == pytest.approx(15 / 17)
    fault = next(example for example in examples if example.kind == "right_wrong")
    assert (fault.problem_id, fault.fault) == ("b", "8*4-2: 8*4-2 does not follow from 5+3*4-2")
    texts = right_reasons.reasoning_table([sums()], counts).display.iloc[0]
    assert texts["right answer, right reasoning"].startswith("33.3 [")


def test_a_claim_can_rest_on_right_reasons() -> None:
    run = make_run(
        [graded_row(0, name, n, TEXTS[name][0], completion=TEXTS[name][1]) for name in TEXTS for n in (0, 1)]
    )
    with pytest.raises(NotMeasured, match="no steps that can be checked"):
        heldout_measures.heldout_change([run], 0, 0, what="right_reasons")
    run.problem_rows["sums"] = {name: SUM._replace(problem_id=name) for name in TEXTS}
    assert heldout_measures.heldout_change([run], 0, 0, what="right_reasons").value == 0
    assert heldout_measures.heldout([run], 0, what="right_reasons").value == pytest.approx(2 / 3)


def test_a_claim_can_rest_on_why_steps_are_wrong() -> None:
    run = sums()
    why = {"fault": "does not follow"}
    assert heldout_measures.heldout([run], 0, what=why).value == pytest.approx(2 / 6)  # b and d
    assert (
        heldout_measures.heldout([run], 0, what={"fault": "It is"}).value == 0
    )  # not searched in the model's own text
    unclear = make_run([graded_row(0, name, 0, "wrong", completion="It is fifteen.") for name in TEXTS])
    unclear.problem_rows.update(run.problem_rows)
    with pytest.raises(NotMeasured, match="too few completions with a step"):
        heldout_measures.heldout([unclear], 0, what=why)


def test_nothing_is_counted_without_problems_or_steps() -> None:
    bare = make_run([graded_row(0, "a", 0, "correct")])
    assert reasoning.count(bare)[0].empty and reasoning.second_verifiers(bare).empty
    bare.problem_rows["sums"] = {"a": Problem("a", "math", "q", "2", {})}
    assert reasoning.count(bare)[0].empty and reasoning.second_verifiers(bare).empty


def test_whole_problems_are_left_out_where_there_are_too_many() -> None:
    run = make_run([graded_row(0, name, n, "correct", completion="15") for name in TEXTS for n in range(2)])
    run.problem_rows["sums"] = {name: SUM._replace(problem_id=name) for name in TEXTS}
    rows = reasoning.checked(run.samples(0, "sums"), run.problem_rows["sums"], 4)
    assert rows is not None and rows.groupby("problem_id").size().tolist() == [2, 2]


def test_a_ratio_of_clusters_of_one_size_is_avg_at_k() -> None:
    correct = np.array([[True, False], [True, True], [False, False], [True, False]])
    same = statistics.ratio(correct.sum(axis=1).astype(float), np.full(4, 2.0))
    assert same == pytest.approx(statistics.avg_at_k(correct))
    assert statistics.ratio(np.array([1.0]), np.array([2.0])) == statistics.Estimate(0.5, 0.0, 1.0)


def test_accuracy_beside_reasoning_has_the_interval_of_the_score() -> None:
    rng = np.random.default_rng(0)
    names = [f"p{number:02}" for number in range(40)]
    for rate in (0.03, 0.5, 1.0):
        rows = [
            graded_row(0, name, 0, "correct" if rng.random() < rate else "wrong", completion="15")
            | {"cluster": f"c{rng.integers(8)}" if rng.random() < 0.8 else None}
            for name in names
        ]
        run = make_run(rows)
        run.problem_rows["sums"] = {name: SUM._replace(problem_id=name) for name in names}
        row = reasoning.count(run)[0].iloc[0]
        interval = [row[f"accuracy_{part}"] for part in ("share", "low", "high")]
        assert interval == pytest.approx(statistics.avg_at_k(run.correct(0, "sums"), clusters=run.clusters("sums")))


def test_a_second_verifier_that_disagrees_is_a_number() -> None:
    counts = reasoning.second_verifiers(mazes())
    row = counts.iloc[0]
    assert (row["answers"], row["own"], row["other"], row["only_own"], row["only_other"]) == (4, 2, 3, 0, 1)
    assert second_verifiers.verifiers_table([mazes()], counts).display.iloc[0]["by the other alone"] == "1"


def test_the_browser_holds_each_picture_once(tmp_path: Path) -> None:
    sample_browser.write([mazes()], [], "t", tmp_path)
    packed = (tmp_path / "chunk-0.js").read_text().split('"')[1]
    chunk = json.loads(gzip.decompress(base64.b64decode(packed)).partition(b"\n")[0])
    assert len(chunk["pictures"]) == 3 and chunk["picture"][0] == chunk["picture"][3]
    assert all(picture.isascii() and picture.startswith("<svg") for picture in chunk["pictures"])


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_page_shows_it_and_links_to_completions(tmp_path: Path) -> None:
    page = build.report([sums()], tmp_path, "t", "demo").read_text()
    assert "right answer, wrong reasoning" in page and 'id="figure-right_reasons"' in page
    assert "samples/index.html#open=%5B%22recipe/run/seed-0%22%2C0%2C%22sums%22%2C%22b%22%2C0%5D" in page
    assert (tmp_path / "tables" / "reasoning.csv").is_file()


@pytest.mark.parametrize(("stored", "expected"), [("same", 1), ("other", 0), ("none", 0)])
def test_reasoning_is_checked_against_the_problems_that_were_graded(tmp_path: Path, stored: str, expected: int) -> None:
    results, run = ResultsFolder(tmp_path), sums()
    name = "imported/mine"
    folder, data = results.run(name), results.benchmarks
    rows = [row | {"run": name, "seed": 0, "prompt_tokens": 1, "protocol": "imported: x"}
            for row in run.graded.to_dict("records")]  # fmt: skip
    graded = table(folder.graded, 0, "sums")
    tables.write(pa.Table.from_pylist(rows, tables.GRADED), tables.GRADED, graded)
    scores = run.scores.assign(run=name, protocol="imported: x")
    tables.write(pa.Table.from_pandas(scores, tables.SCORE), tables.SCORE, folder.scores)
    problems = [SUM._replace(problem_id=one) for one in TEXTS]
    tables.write(to_table(problems), tables.PROBLEM, data / "sums.parquet")
    provenance.write(graded, problems_sha256=problems_hash(data, "sums"))
    if stored == "other":
        problems[0] = problems[0]._replace(answer="16")
        tables.write(to_table(problems), tables.PROBLEM, data / "sums.parquet")
    elif stored == "none":
        (data / "sums.parquet").unlink()
    assert len(reasoning.count(load_results(tmp_path, name))[0]) == expected
