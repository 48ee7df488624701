"""One comparison of recorded settings: the gate, the report's pairs and provenance_diff name the same difference."""

import json
from pathlib import Path
from typing import Any

import pytest
from synthetic_results import BENCHMARKS, write_run

from analysis import comparability, provenance_diff
from analysis.compare_checkpoints import graded_checkpoint
from analysis.load_results import load_results
from analysis.report import build
from analysis.report.pair_verdicts import PagePairs
from analysis.report.sections import run_pairs
from analysis.results import check_one_measurement
from contracts import paths, provenance
from tests.user_errors import refused

FIRST, SECOND = "recipe/first/seed-0", "recipe/second/seed-0"
STEPS, STEP = (0, 10), 10
PROTOCOL = {"name": "demo", "source": "ours", "prompt": "boxed", "chat_template": True, "temperature": 1.0,
            "top_p": 1.0, "max_tokens": 96, "stop": [], "extraction": "none"}  # fmt: skip
RECORD = {
    "samples": {"protocol": PROTOCOL, "chat_template_sha256": "t1", "repeats": 2},
    "problems_sha256": "p1",
    "grader": "math-verify 0.8.0",
    "extraction": "none",
}
CHANGES = {
    "an override": ({"samples": {"protocol": {"max_tokens": 40}}}, "different protocol settings: max_tokens 96 and 40"),
    "the prompt's name": (
        {"samples": {"protocol": {"prompt": "r1"}}},
        "different protocol settings: prompt boxed and r1",
    ),
    "the template": ({"samples": {"chat_template_sha256": "t2"}}, "different chat template"),
    "the problems": ({"problems_sha256": "p2"}, "different benchmark data"),
    "the extraction": ({"extraction": "last-number"}, "different answer extraction: none and last-number"),
}
NO_CHANGES: list[dict[str, Any]] = [
    {"samples": {"protocol": {"source": "a page"}}},
    {"samples": {"protocol": {"extraction": "last-number"}}},  # how the samples were graded is in the grading's record
    {"samples": {"repeats": 4, "seed": {"base": 1}}},
]


def merged(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    both = {
        key: merged(one[key], two[key]) for key in one if isinstance(one[key], dict) and isinstance(two.get(key), dict)
    }
    return {**one, **two, **both}


def record(results: Path, run: str, change: dict[str, Any], steps: tuple[int, ...] = STEPS) -> None:
    """Write the records of a run's graded tables."""
    for step in steps:
        for name in BENCHMARKS:
            table = paths.table(results / "runs" / run / "graded", step, name)
            provenance.write(table, **merged(RECORD, change))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for run in (FIRST, SECOND):
        write_run(tmp_path, run, 0.6, steps=STEPS, problems=12, repeats=2)
        record(tmp_path, run, {})
    return tmp_path


def reasons(results: Path) -> dict[str, str]:
    """What each of those who compare says about the last checkpoints of the two runs."""
    first, second = (load_results(results, name) for name in (FIRST, SECOND))
    pairs = run_pairs.pairs_table(PagePairs.compared([first, second]))
    assert pairs is not None
    sides = [graded_checkpoint.read(results / "runs" / name / "graded") for name in (SECOND, FIRST)]
    return {
        "gate": "; ".join(graded_checkpoint.obstacles(*sides, BENCHMARKS[0])),
        "report": str(pairs.data["not_compared"].iloc[0]),
        "provenance_diff": "; ".join(provenance_diff.compare_scores(first, second, STEP, BENCHMARKS[0]).not_comparable),
    }


@pytest.mark.slow
@pytest.mark.parametrize("what", CHANGES)
def test_all_name_what_differs_and_nothing_is_paired(results: Path, what: str) -> None:
    change, reason = CHANGES[what]
    record(results, SECOND, change)
    assert reasons(results) == dict.fromkeys(("gate", "report", "provenance_diff"), reason)
    pairs = run_pairs.pairs_table(PagePairs.compared([load_results(results, name) for name in (FIRST, SECOND)]))
    assert pairs is not None and "value" not in pairs.data
    assert pairs.display.iloc[0]["verdict"] == f"not compared: {reason}"


@pytest.mark.slow
@pytest.mark.parametrize("change", NO_CHANGES)
def test_what_does_not_decide_a_score_is_no_difference(results: Path, change: dict[str, Any]) -> None:
    record(results, SECOND, change)
    assert set(reasons(results).values()) == {""}


@pytest.mark.slow
def test_checkpoints_of_a_run_that_were_measured_differently_are_not_reported(results: Path) -> None:
    change, _ = CHANGES["an override"]
    record(results, FIRST, change, steps=(STEP,))
    with refused("not-comparable", benchmark=BENCHMARKS[0], step=STEP):
        build.report([load_results(results, FIRST)], results / "report", "title", "demo")
    record(results, FIRST, change, steps=(0,))
    check_one_measurement(load_results(results, FIRST))


@pytest.mark.slow
def test_a_pair_that_differs_on_one_benchmark_is_said_to(results: Path) -> None:
    change, reason = CHANGES["the problems"]
    for step in STEPS:
        table = paths.table(results / "runs" / SECOND / "graded", step, BENCHMARKS[1])
        provenance.write(table, **merged(RECORD, change))
    pairs = run_pairs.pairs_table(PagePairs.compared([load_results(results, name) for name in (FIRST, SECOND)]))
    assert pairs is not None and pairs.data["not_compared"].iloc[0] == f"{reason} ({BENCHMARKS[1]})"


def test_records_of_regraded_samples_say_how_these_were_asked_for(results: Path) -> None:
    """The samples of regraded/<grader>/graded/… are not beside them; their record repeats how they were asked for."""
    folder = results / "runs" / FIRST
    (folder / "regraded/strict+none").mkdir(parents=True)
    moved = (folder / "graded").rename(folder / "regraded/strict+none/graded")
    assert graded_checkpoint.read(moved).settings[BENCHMARKS[0]]["protocol"]["max_tokens"] == 96


def test_prompts_may_be_accepted_with_what_belongs_to_them(results: Path) -> None:
    one, two = (
        comparability.settings(merged(RECORD, CHANGES[what][0]), {}) for what in ("the prompt's name", "the template")
    )
    samples = load_results(results, FIRST).samples(STEP, BENCHMARKS[0])
    sides = comparability.Result(samples, one), comparability.Result(samples, two)
    assert len(comparability.differences(*sides)) == 2
    assert comparability.differences(*sides, accepted=["prompt"]) == []


def test_what_an_importer_hashed_is_not_taken_for_the_problems(results: Path) -> None:
    assert "problems_sha256" not in comparability.settings({}, {"imported": {}, "problems_sha256": "of the file"})
    json.dumps(comparability.settings(RECORD, {}))
