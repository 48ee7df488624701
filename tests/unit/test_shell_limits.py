"""Grading, scores and the report under `ulimit -f` and `ulimit -v` end in one sentence where libraries can load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from contracts import tables
from contracts.run_file import ROOT
from tests.unit.report.synthetic_results import write_run
from tests.user_errors import printed_code

pytestmark = pytest.mark.slow
RUN = "openr1/math-7b/seed-0"
# Others take ten seconds of a core.
COMMANDS = ["grade", *(pytest.param(name, marks=pytest.mark.long) for name in ("score", "report"))]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Results of a run, samples to be graded, and their problems."""
    write_run(tmp_path / "results", RUN, 0.6, benchmarks=("arithmetic_words",), steps=(0, 20), problems=40)
    graded = tmp_path / "results" / "runs" / RUN / "graded" / "step-20" / "arithmetic_words.parquet"
    rows = tables.read(graded, tables.GRADED).to_pylist()
    samples = pa.Table.from_pylist([{n: row[n] for n in tables.SAMPLE.names} for row in rows], schema=tables.SAMPLE)
    tables.write(samples, tables.SAMPLE, tmp_path / "samples/step-20/arithmetic_words.parquet")
    problems = {
        row["problem_id"]: {"problem_id": row["problem_id"], "task": "math", "answer": row["gold"]} for row in rows
    }
    table = pa.Table.from_pylist([dict.fromkeys(tables.PROBLEM.names) | one for one in problems.values()])
    tables.write(table.cast(tables.PROBLEM), tables.PROBLEM, tmp_path / "data/arithmetic_words.parquet")
    return tmp_path


def command(name: str, stored: Path) -> list[str]:
    commands = {
        "grade": "eval.grade --extraction none --samples {0}/samples --data {0}/data --output {0}/new",
        "score": f"eval.score --graded {{0}}/results/runs/{RUN}/graded --output {{0}}/new.parquet",
        "report": f"analysis.report --results {{0}}/results --run {RUN} --output {{0}}/new",
    }
    return [sys.executable, "-m", *commands[name].format(stored).split(" ")]


def limited(limit: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    shell = ["bash", "-c", f'ulimit {limit}; exec "$@"', "bash", *arguments]
    return subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_limit_of_file_lengths_ends_in_a_sentence_and_without_it_the_command_works(name: str, stored: Path) -> None:
    done = limited("-f 0", command(name, stored))
    assert done.returncode == 1 and printed_code(done.stderr) == "file-too-long" and done.stderr.count("\n") == 1, done
    assert not [*stored.glob("new/**/*.parquet"), *stored.glob("new*.parquet"), *stored.glob("new/index.html")]
    assert limited("-f unlimited", command(name, stored)).returncode == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_a_limit_of_memory_ends_in_a_sentence_or_is_enough(name: str, stored: Path) -> None:
    done = limited("-v 1048576", command(name, stored))
    assert "Traceback" not in done.stderr
    assert done.returncode == 0 or (printed_code(done.stderr) == "out-of-memory" and done.stderr.count("\n") == 1), done


def test_a_limit_in_which_libraries_cannot_load_is_refused_first() -> None:
    for arguments in (["-m", "cli.main", "report"], ["-m", "snakemake", "-n", "report"]):
        done = limited("-v 900000", [sys.executable, *arguments])
        assert printed_code(done.stdout + done.stderr) == "out-of-memory" and "Traceback" not in done.stderr, done
