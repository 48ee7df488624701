"""Folders with spaces, quotes and shell code in their names: everything works, and nothing in a name is run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from contracts import paths, tables
from eval.importers.import_samples import import_samples
from system import json_lines
from tests.unit import model_folders
from tests.unit.report.synthetic_results import training_log
from tests.workflow import miniature

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
ODD = """a  b's "c" $(touch ran)`touch ran`;touch ran&#|<>\\ é~!%^=,@+"""
RUN = f"{miniature.RUN}/seed-0"
BENCHMARKS = ("arithmetic_expressions", "arithmetic_words")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In a folder with a name as odd as it may be, with all configured folders odder still."""
    folder = tmp_path_factory.mktemp("odd") / "it's a (project) & é;touch ran"
    folder.mkdir()
    miniature.copy(folder)
    named = {"results": f"results {ODD}", "work": f"work {ODD}", "data_mirror": f"mirror {ODD}"}
    miniature.edit(folder / "config" / "config.yaml", **named, benchmarks=list(BENCHMARKS))
    return folder


def results(project: Path) -> paths.ResultsFolder:
    return paths.ResultsFolder(Path(f"results {ODD}") / "demo")


def nothing_ran(project: Path) -> bool:
    return not list(project.parent.rglob("ran"))


def test_the_whole_graph(project: Path) -> None:
    model = project / f"model {ODD}"
    model.mkdir()
    for name, content in model_folders.CONTENT.items():
        (model / name).write_text(content)
    model_folders.weights(model / "model.safetensors")
    miniature.edit(project / "config" / "config.yaml", checkpoint=model.name, baseline=f"{RUN}/step-0")
    for target, *settings in (
        ("reproduce_all",), ("compare_checkpoints", "limit=5"), ("evaluate",), ("contamination",), ("capacity",),
        ("parse_runs",),
    ):  # fmt: skip
        more = ["--config", *settings] if settings else []
        status, output = miniature.snakemake(project, "--dry-run", "--forceall", "--printshellcmds", target, *more)
        assert status == 0, output
        assert target != "reproduce_all" or "--mirror 'mirror " in output
        assert not re.findall(r"\{[a-z_]+\}", output), "a path with a wildcard that was never filled in"
    assert nothing_ran(project)


@pytest.fixture(scope="module")
def graded(project: Path) -> Path:
    """The project with problems and scores; the samples are imported."""
    run_results = results(project)
    tables_of_problems = [str(run_results.problems("benchmarks", name)) for name in BENCHMARKS]
    status, output = miniature.snakemake(project, "--", *tables_of_problems, str(run_results.overlap("all")))
    assert status == 0, output
    run = run_results.run(RUN)
    for step in (0, *miniature.CHECKPOINTS):
        for name in BENCHMARKS:
            problems = tables.read(project / run_results.problems("benchmarks", name), tables.PROBLEM)
            source = project / "source.jsonl"
            source.write_text(
                "".join(
                    json_lines.dump({"i": row["problem_id"], "a": row["answer"], "c": f"\\boxed{{{row['answer']}}}"})
                    for row in problems.to_pylist()
                )
            )
            mapping = {"problem_id": "i", "completion": "c", "gold": "a"}
            samples, _ = import_samples(
                "jsonl", [source], name, RUN, step=step, mapping=mapping, problems=problems, by="id"
            )
            rows = [row | {"protocol": "greedy-boxed"} for row in samples.to_pylist()]
            table = pa.Table.from_pylist(rows, tables.SAMPLE)
            tables.write(table, tables.SAMPLE, project / paths.table(run.samples, step, name))
    status, output = miniature.snakemake(
        project, "--allowed-rules", "grade_samples", "score_run", "--", str(run.scores)
    )
    assert status == 0 and (project / run.scores).is_file(), output
    return project


@pytest.mark.long
def test_problems_are_made_samples_imported_graded_scored_and_reported(graded: Path) -> None:
    project, run_results = graded, results(graded)
    run = run_results.run(RUN)
    log = pa.Table.from_pylist(training_log(RUN, 0.6, miniature.CHECKPOINTS[-1]), tables.TRAINING_LOG)
    tables.write(log, tables.TRAINING_LOG, project / run.training_log)
    status, output = miniature.snakemake(project, "report", "--allowed-rules", "report", "report_page")
    assert status == 0 and (project / run_results.path / "report/all/index.html").is_file(), output
    assert nothing_ran(project)


@pytest.mark.long
def test_the_gate_compares_folders_with_odd_names(graded: Path) -> None:
    step, project = str(results(graded).run(RUN).graded / "step-0"), graded
    miniature.edit(project / "config" / "config.yaml", checkpoint=step, baseline=step)
    status, output = miniature.snakemake(
        project, "compare_checkpoints", "--allowed-rules", "compare_checkpoints", "compare_pair"
    )
    assert status == 0 and "cannot tell" in output, output
    assert nothing_ran(project)


def test_make_in_a_folder_with_an_odd_name(project: Path) -> None:
    # A make that `make test` started would print a line about its folder here, which is not shell code.
    makefile = Path(__file__).parents[2] / "Makefile"
    make = ["make", "--no-print-directory", "--file", makefile, f"PYTHON={sys.executable}"]
    done = subprocess.run([*make, "help", "base"], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # What `make demo` runs before Snakemake: the environment's Python is found.
    commands = subprocess.run(
        [*make, "--dry-run", "demo"], cwd=project, capture_output=True, text=True, check=True
    ).stdout
    script = re.sub("snakemake --quiet rules .*", "command -v python", commands, flags=re.DOTALL)
    assert script != commands
    printed = subprocess.run(["sh", "-c", script], cwd=project, capture_output=True, text=True, check=True).stdout
    assert f"{project}/.envs/base-" in printed
    assert nothing_ran(project)


@pytest.mark.parametrize("key", ["results", "work", "data_mirror", "checkpoint", "baseline"])
def test_a_name_that_cannot_be_used_is_refused_before_anything_runs(key: str, tmp_path: Path) -> None:
    folder = miniature.copy(tmp_path)
    before = sorted(folder.iterdir())
    miniature.edit(folder / "config" / "config.yaml", **{key: "a\nb\x1b[2J"})
    status, output = miniature.snakemake(folder, "help")
    assert status == 1, output
    sentence = f"config: {key} should be a plain path, but 'a␊b␛[2J' has "
    assert output.count(sentence) == 1 and "Traceback" not in output and "\x1b" not in output, output
    assert [path.name for path in sorted(folder.iterdir()) if path not in before] in ([], [".snakemake"])


def test_a_project_in_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    folder = tmp_path / "a $(touch ran)"
    folder.mkdir()
    miniature.copy(folder)
    status, output = miniature.snakemake(folder, "help")
    assert status == 1 and output.count("move or rename the folder") == 1 and "Traceback" not in output, output
    command = [sys.executable, "envs/build.py", "base"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "whose name has '$': move or rename the folder" in done.stderr
    assert nothing_ran(folder)
