"""A training log made elsewhere stands beside our runs, with its curves and signs of collapse, or on a page alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from report_runs import log_row
from synthetic_results import NAMES
from test_content_policy import check
from test_report_page import check_page

from analysis.load_results import load_results
from analysis.report.build import report
from contracts import provenance, tables
from tests.forked_command import run_module
from tests.user_errors import refused

IMPORTED = "imported/collapsed"
pytestmark = pytest.mark.slow


@pytest.fixture
def log(results: Path) -> Path:
    """Ten good steps, then ten whose completions are all truncated."""
    rows = [log_row(step, run=IMPORTED, truncated_rate=float(step > 10), kl=0.01) for step in range(1, 21)]
    path = results / "runs" / IMPORTED / "training_log.parquet"
    tables.write(pa.Table.from_pylist(rows, tables.TRAINING_LOG), tables.TRAINING_LOG, path)
    provenance.write(path, imported={"theirs.jsonl": "0" * 64}, framework="x", source="Someone's <paper>")
    return path


@pytest.mark.long
def test_beside_our_runs(results: Path, log: Path, tmp_path: Path) -> None:
    runs = [load_results(results, name) for name in (NAMES[0], IMPORTED)]
    assert not runs[1].evaluated and runs[1].trained
    html = report(runs, tmp_path / "report", "Both", "demo").read_text(encoding="utf-8")
    check_page(html)
    assert "Someone&#39;s &lt;paper&gt;" in html and "theirs.jsonl" in html
    assert "length at the cap at step 13" in html and "this training log is imported" in html
    assert IMPORTED in (tmp_path / "report/figures/reward.svg").read_text(encoding="utf-8")
    assert IMPORTED not in (tmp_path / "report/figures/heldout_accuracy.svg").read_text(encoding="utf-8")


def test_alone(results: Path, log: Path, tmp_path: Path) -> None:
    arguments = ["--results", results, "--run", IMPORTED, "--output", tmp_path / "report"]
    run_module("analysis.report", *arguments).check_returncode()
    html = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "length at the cap" in html and "figure-divergence" in html and "http-equiv=refresh" not in html
    assert "Someone&#39;s &lt;paper&gt;" in html and "theirs.jsonl" in html
    assert "<b>truncation in training</b>" in html and "<b>imported</b>" in html
    check(html)


def test_a_log_of_another_name_is_refused(results: Path, log: Path) -> None:
    other = results / "runs" / "imported" / "other"
    log.parent.rename(other)
    with refused("other-run", run="imported/other", names=["imported/collapsed"]):
        load_results(results, "imported/other")
