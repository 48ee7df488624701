"""The layout of results: one module writes the names of folders, and reads them back."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts import paths, seeds, steps


@pytest.mark.parametrize("step", [0, 7, 100])
def test_a_step_is_read_back(step: int) -> None:
    assert steps.parse(steps.folder(step)) == step


@pytest.mark.parametrize("name", ["step-", "step--1", "stage-1", "20", "step-1a", "step-²", "my-step-2"])
def test_other_names_are_no_steps(name: str) -> None:
    with pytest.raises(ValueError, match="does not name a step"):
        steps.parse(name)


def test_steps_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("step-100", "step-20", "step-0", "step-x", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-5").touch()  # a file
    (tmp_path / "step-20" / "b.parquet").touch()
    (tmp_path / "step-0" / "b.parquet").touch()
    assert list(steps.folders(tmp_path)) == [0, 20, 100]
    assert paths.tables(tmp_path) == [paths.table(tmp_path, 0, "b"), paths.table(tmp_path, 20, "b")]


def test_ids_of_runs() -> None:
    assert seeds.run_of(seeds.run_id("openr1/math", 3)) == "openr1/math"
    assert seeds.run_of("imported/mine") == "imported/mine"


def test_wildcards_pass_through() -> None:
    run = paths.ResultsFolder(Path("results/demo")).run(seeds.run_id("{recipe}/{run}", "{seed}"))
    assert str(run.checkpoint("{step}")) == "results/demo/runs/{recipe}/{run}/seed-{seed}/checkpoints/step-{step}"


def test_the_record_is_beside_a_file_and_inside_a_folder(tmp_path: Path) -> None:
    assert paths.record(tmp_path) == tmp_path / "provenance.json"
    assert paths.record(tmp_path / "a.parquet") == tmp_path / "a.parquet.provenance.json"
