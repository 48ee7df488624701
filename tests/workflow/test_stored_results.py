"""`snakemake report --allowed-rules report report_page` makes the page from what is stored, and starts nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from contracts import provenance
from contracts.paths import ResultsFolder
from tests.unit.report.synthetic_results import write_run
from tests.user_errors import printed_code
from tests.workflow import miniature

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
PAGE_ALONE = ("report", "--allowed-rules", "report", "report_page")
OTHER = "tinyzero/grpo-3b"
PAGE = Path("results/demo/report/all/index.html")


def copy(folder: Path) -> Path:
    """A copy of the project without results."""
    miniature.copy_sources(folder)
    (folder / ".envs").symlink_to(miniature.ROOT / ".envs")
    miniature.edit(folder / "config" / "config.yaml", reproduce=[miniature.RUN])
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return copy(tmp_path)


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A copy with results whose page was made, and what Snakemake printed."""
    folder = copy(tmp_path_factory.mktemp("reported"))
    store(folder, miniature.RUN)
    status, output = miniature.snakemake(folder, *PAGE_ALONE)
    assert status == 0, output
    return folder, output


def store(project: Path, run: str) -> None:
    """Results of a training as the line leaves them, and the overlap of the data."""
    results = ResultsFolder(project / "results" / "demo")
    write_run(results.path, f"{run}/seed-0", 0.8, benchmarks=("words",), steps=(0, 20), problems=40)
    overlap = results.overlap("all")
    overlap.parent.mkdir(parents=True, exist_ok=True)
    overlap.write_text(
        "train,benchmark,train_rows,problems,exact,exact_share,exact_train_rows,gram13,gram13_share,gram13_rare,gram13_rare_share,gram13_half,gram13_half_share,gram13_train_rows,gram13_too_short,gram8,gram8_share,gram8_rare,gram8_rare_share,gram8_half,gram8_half_share,gram8_train_rows,gram8_too_short\n"
    )


def test_in_an_empty_project_it_ends_with_one_sentence(project: Path) -> None:
    before = {path for path in project.rglob("*") if path.is_file()}
    status, output = miniature.snakemake(project, *PAGE_ALONE)
    assert status and printed_code(output) == "missing-results", output
    assert output.strip().split("\n")[-1].startswith("Error: 2 results are missing"), output
    after = {path for path in project.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert not [path for path in after - before if ".snakemake" not in path.parts]


def test_with_one_run_missing_it_ends_with_one_sentence_and_names_it(project: Path) -> None:
    store(project, miniature.RUN)
    status, output = miniature.snakemake(project, *PAGE_ALONE, "--config", f"reproduce=[{miniature.RUN},{OTHER}]")
    assert status and printed_code(output) == "missing-results" and f"runs/{OTHER}/seed-0" in output, output
    assert not (project / PAGE).exists() and not (project / "work").exists()


def test_with_all_results_it_makes_the_page_alone(reported: tuple[Path, str]) -> None:
    project, output = reported
    assert (project / PAGE).is_file(), output
    assert [line for line in output.split("\n") if line.startswith(("report", "total"))], output
    assert miniature.jobs_started(output, "report_page") == 1, output
    assert not list((project / "results/demo/models").glob("demo*"))


def test_a_replaced_result_is_noticed_before_it_says_that_nothing_is_to_be_done(reported: tuple[Path, str]) -> None:
    project, _ = reported
    model = project / "results/demo/models/arithmetic"
    model.mkdir(parents=True)
    (weights := model / "model.safetensors").write_text("weights")
    provenance.write(model, sha256=provenance.sha256(model))
    status, output = miniature.snakemake(project, *PAGE_ALONE)
    assert status == 0 and not miniature.jobs_started(output, "report_page"), output
    weights.write_text("of another")
    os.utime(weights, (time.time() + 3600,) * 2)
    status, output = miniature.snakemake(project, *PAGE_ALONE)
    assert status and printed_code(output) == "artefact-changed" and "models/arithmetic" in output, output


def test_no_rule_decides_while_the_workflow_runs() -> None:
    """A checkpoint rule would make Snakemake leave --allowed-rules out of account."""
    files = [
        miniature.ROOT / "Snakefile",
        *miniature.ROOT.glob("workflows/*.smk"),
        *miniature.ROOT.glob("studies/*/*.smk"),
    ]
    assert not [file for file in files if "\ncheckpoint " in file.read_text(encoding="utf-8")]
