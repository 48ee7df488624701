"""Provenance records gathered by stage."""

from dataclasses import replace
from typing import Any

from report_runs import graded_row, make_run

from analysis.provenance_summary import stages

SHARED: dict[str, Any] = {
    "made_at": "2026-01-02T03:04:05+00:00", "git_commit": "a" * 40, "git_dirty": False, "python": "3.11.7",
    "environment": {"environment": "trl", "lock": "cpu.lock", "sha256": "b" * 64}, "packages": {"trl": "1.16.0"},
    "devices": ["cpu (x86_64)"],
}  # fmt: skip
RUN = make_run([graded_row(0, "p0", 0, "correct")])


def test_stages_in_the_order_of_the_line_with_their_own_settings() -> None:
    records = {
        "scores.parquet.provenance.json": SHARED,
        "graded/step-0/sums.parquet.provenance.json": SHARED | {"decoding": {"temperature": 0.6, "seeds": [1, 2]}},
        "graded/step-9/sums.parquet.provenance.json": SHARED | {"decoding": {"temperature": 1.0, "seeds": [1, 2]}},
        "stage-1/training_log.parquet.provenance.json": SHARED | {"seed": 7, "nothing": None},
        "strange.provenance.json": {},
    }
    summaries = {stage.name: stage for stage in stages(replace(RUN, provenance=records))}
    assert list(summaries) == ["training", "grading", "scoring", "other"]
    assert summaries["grading"].records == 2
    assert summaries["grading"].settings == {"decoding.temperature": "0.6 / 1.0", "decoding.seeds": "1, 2"}
    assert summaries["training"].settings == {"seed": "7", "nothing": "none"}
    training = summaries["training"]
    assert (training.commit, training.dirty, training.lock) == ("a" * 12, "no", "trl/cpu.lock bbbbbbbbbbbb")
    assert (training.made_at, training.packages) == ("2026-01-02 03:04", {"trl": "1.16.0"})
    other = summaries["other"]
    assert (other.commit, other.dirty, other.lock, other.devices) == ("unknown", "unknown", "unknown", "unknown")


def test_records_that_differ_say_so() -> None:
    records = {
        f"graded/step-{i}/sums.parquet.provenance.json": SHARED | {"git_commit": str(i) * 40, "git_dirty": i == 3}
        for i in range(5)
    }
    (stage,) = stages(replace(RUN, provenance=records))
    assert stage.commit == "5 different values, such as 000000000000"
    assert stage.dirty == "no / yes"
