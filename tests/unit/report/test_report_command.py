"""The command as the workflow calls it."""

import subprocess
from pathlib import Path

import pytest
from synthetic_results import NAMES

from tests.forked_command import run_module
from tests.user_errors import printed_code

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.slow


def command(results: Path, output: Path, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = ["--results", results, "--run", *NAMES, "--output", output, *more]
    return run_module("analysis.report", *arguments)


def test_report_is_made_and_its_path_printed(results: Path, tmp_path: Path) -> None:
    done = command(results, tmp_path / "out", "--title", "A <title> & more", "--scale", "full")
    assert (done.returncode, done.stdout) == (0, f"report: {tmp_path / 'out' / 'index.html'}\n"), done.stderr
    html = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "<h1>A &lt;title&gt; &amp; more</h1>" in html and "scale: <b>full</b>" in html


def test_an_incomplete_run_ends_it_with_one_sentence_and_leaves_no_report(results: Path, tmp_path: Path) -> None:
    (results / "runs" / NAMES[1] / "graded/step-40/arithmetic_words.parquet").unlink()
    done = command(results, tmp_path / "out")
    assert done.returncode == 1
    folder = results / "runs" / NAMES[1]
    assert done.stderr.startswith(f"Error: run {NAMES[1]} is incomplete") and done.stderr.count("\n") == 1
    assert "step 40 on arithmetic_words has no graded samples" in done.stderr
    assert f"delete {folder / 'graded'} to grade it again" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_run_named_twice(results: Path, tmp_path: Path) -> None:
    done = command(results, tmp_path / "out", "--run", NAMES[0], NAMES[0])
    assert done.returncode == 1 and printed_code(done.stderr) == "repeated-name"
