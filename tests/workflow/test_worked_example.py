"""A task added as CONTRIBUTING says: four files, then trained, evaluated and reported without another change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from contracts import tables
from contracts.run_file import ROOT
from tests import needs
from tests.workflow import miniature

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
EXAMPLE = ROOT / "examples" / "task"
FILES = [
    "eval/benchmarks/largest_number.yaml",
    "recipes/largest_number/grpo.yaml",
    "tasks/largest_number/__init__.py",
    "tasks/largest_number/task.yaml",
]


def test_contributing_names_the_files_of_the_example() -> None:
    added = [path for path in EXAMPLE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sorted(str(path.relative_to(EXAMPLE)) for path in added) == FILES
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(file in guide for file in FILES)


@pytest.mark.long
def test_a_task_is_trained_evaluated_and_reported_with_the_files_of_the_example_alone(tmp_path: Path) -> None:
    needs.skip_without("trl", "eval")
    project = miniature.copy(tmp_path)
    for file in FILES:
        (project / file).parent.mkdir(parents=True, exist_ok=True)
        assert not (project / file).exists()
        shutil.copy(EXAMPLE / file, project / file)

    status, output = miniature.snakemake_process(
        project, "reproduce_largest_number", "--config", "reproduce=[largest_number]"
    )

    assert status == 0, output
    run = project / "results/demo/runs/largest_number/grpo/seed-0"
    log = tables.read(run / "training_log.parquet", tables.TRAINING_LOG).to_pydict()
    assert log["step"] == [1, 2, 3, 4] and all(value is not None for value in log["accuracy"])
    for step in (0, 4):
        graded = tables.read(run / f"graded/step-{step}/largest_number.parquet", tables.GRADED).to_pylist()
        assert len(graded) == 20 * 2 and {row["verdict"] for row in graded} <= set(tables.VERDICTS)
    scores = tables.read(run / "scores.parquet", tables.SCORE).to_pylist()
    assert [(row["step"], row["benchmark"]) for row in scores] == [(0, "largest_number"), (4, "largest_number")]
    assert "largest_number/grpo" in (project / "results/demo/report/largest_number/index.html").read_text()
