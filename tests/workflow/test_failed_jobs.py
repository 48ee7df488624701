"""A job that fails in any kind of rule: its sentence is on the terminal once, with the command that resumes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cluster import failed_jobs
from tests.workflow import miniature

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
RESULTS = Path("results/demo")
RUN = RESULTS / "runs" / miniature.RUN / "seed-0"
LAST = miniature.CHECKPOINTS[-1]
BENCHMARKS = ("arithmetic_expressions", "arithmetic_words")
# rule: what is asked for, its inputs (folders end with a slash), and words of the sentence.
FAILING: dict[str, tuple[Path, list[str], str]] = {
    "train": (
        RUN / "stage-1/training_log.parquet",
        ["data/train/arithmetic.parquet", f"{RUN.relative_to(RESULTS)}/checkpoints/step-0/"],
        "has no config.json and no weights",
    ),
    "export": (
        RUN / "checkpoints/step-0",
        ["models/demo/"],
        "has no config.json and no weights",
    ),
    "generate_samples": (
        RUN / "samples",
        [
            *(f"{RUN.relative_to(RESULTS)}/checkpoints/step-{step}/" for step in (0, *miniature.CHECKPOINTS)),
            *(f"data/benchmarks/{name}.parquet" for name in BENCHMARKS),
        ],
        "config.json",
    ),
    "grade_samples": (
        RUN / "graded",
        [f"{RUN.relative_to(RESULTS)}/samples/", *(f"data/benchmarks/{name}.parquet" for name in BENCHMARKS)],
        "samples",
    ),
    "score_run": (
        RUN / "scores.parquet",
        [f"{RUN.relative_to(RESULTS)}/graded/", *(f"data/benchmarks/{name}.parquet" for name in BENCHMARKS)],
        "should hold step-<n>/<benchmark>.parquet",
    ),
    "report_page": (
        RESULTS / "report/all/index.html",
        [
            f"{RUN.relative_to(RESULTS)}/graded/",
            f"{RUN.relative_to(RESULTS)}/scores.parquet",
            f"{RUN.relative_to(RESULTS)}/training_log.parquet",
            "data/overlap/all.csv",
        ],
        "parquet",
    ),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return miniature.copy(tmp_path_factory.mktemp("failing"))


def sentence(project: Path, rule: str) -> str:
    """The last sentence in the rule's log."""
    folder = {"generate_samples": "generate", "grade_samples": "grade", "score_run": "score", "report_page": "report"}
    (log,) = (project / "logs/demo" / folder.get(rule, rule)).rglob("*.log")
    return [line for line in log.read_text().split("\n") if line.startswith("Error: ")][-1].removeprefix("Error: ")


CASES = {(rule, "--quiet rules --") for rule in FAILING} | {("train", "--"), ("score_run", "--")}
COSTLY = {("generate_samples", "--quiet rules --"), ("score_run", "--")}


@pytest.mark.parametrize(
    ("rule", "quiet"), [pytest.param(*case, marks=[pytest.mark.long] * (case in COSTLY)) for case in sorted(CASES)]
)
def test_the_sentence_is_shown_once_and_how_to_resume(project: Path, rule: str, quiet: str) -> None:
    target, inputs, message = FAILING[rule]
    for name in inputs:
        path = project / RESULTS / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        path.touch()
    options = ["--allowed-rules", rule, "--forcerun", rule, *quiet.split(), str(target)]
    status, output = miniature.snakemake(project, *options)
    said = sentence(project, rule)
    assert status == 1 and message in said, output
    assert output.count(said) == 1, output
    assert "CalledProcessError" not in output and "Traceback" not in output, output
    assert output.count("this continues: snakemake --allowed-rules") == 1, output
    assert f"{rule} failed, which makes {target}" in output


def test_make_is_named_where_it_was_called(project: Path) -> None:
    target, inputs, _ = FAILING["score_run"]
    for name in inputs:
        path = project / RESULTS / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        path.touch()
    command = ["snakemake", "--quiet", "rules", "--allowed-rules", "score_run", "--", str(target)]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, failed_jobs.COMMAND: "make demo"}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.count("this continues: make demo") == 1, done.stderr


def test_a_verdict_is_shown_once_and_nothing_is_resumed(project: Path) -> None:
    compared = project / RESULTS / "compare/models"  # any folder that `compare_checkpoints` shows
    status, output = miniature.snakemake(
        project, "compare_checkpoints", "--config", "checkpoint=nowhere", "baseline=nowhere"
    )
    assert status == 1 and output.count("nowhere should be a folder with a model") == 1, output
    assert "this continues" not in output and not compared.exists()


def test_the_last_lines_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    earlier = b"Error: the first time\n" + b"noise\n" * 9
    log.write_bytes(earlier + b"1%\r2%\rError: it broke\n  for a \x1b[2J reason\n\n")
    assert failed_jobs.last_lines(log) == ["Error: it broke", "  for a ␛[2J reason"]
    log.write_text("".join(f"{number}\n" for number in range(100)) + "\N{LINE SEPARATOR}")
    assert failed_jobs.last_lines(log)[-2:] == ["99", "⟨U+2028⟩"] and len(failed_jobs.last_lines(log)) == 25
    log.write_bytes(b"\xff\xfe" * 10 + b"x" * failed_jobs.MAX_BYTES)
    assert len(failed_jobs.last_lines(log)) == 1
    assert failed_jobs.last_lines(tmp_path / "none") == []
