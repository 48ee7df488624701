"""The layout of results: one module writes the names of folders, and reads them back."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from contracts import paths, seeds, steps
from contracts.run_file import ROOT, validate
from eval.importers.import_samples import check_sample_names
from tests.user_errors import refused


@pytest.mark.parametrize("step", [0, 7, 100])
def test_a_step_is_read_back(step: int) -> None:
    assert steps.parse(steps.folder(step)) == step


@pytest.mark.parametrize("name", ["step-", "step--1", "stage-1", "20", "step-1a", "step-²", "my-step-2"])
def test_other_names_are_no_steps(name: str) -> None:
    with pytest.raises(ValueError):
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


@pytest.mark.parametrize(
    "name", ["a b", "it's", 'a"b', "$(touch x)", "`x`;&|<>", "../mirror", "/a//b/", "é\u4e2d", "~a"]
)
def test_a_path_may_have_what_a_shell_would_read(name: str) -> None:
    paths.check_path("results", name)


@pytest.mark.parametrize(
    "name", ["a\nb", "a\tb", "\x1b[2J", "a\u2028b", "a\u202eb", "a\0", "{a}", "a*", "a?", "[a]", "-a", " a", "a "]
)
def test_other_paths_are_refused_in_one_line(name: str) -> None:
    with refused("unusable-path", key="results"):
        paths.check_path("results", name)


OUTSIDE = ["..", "../x", "a/../../x", "/etc", "a//b", "a/", "", ".", "a/./b", "a\nb", "a/b\n", "\x1b[2J/b", "a/\u202eb"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_run_stays_in_the_results_folder(name: str) -> None:
    with refused("invalid-run-id"):
        paths.ResultsFolder(Path("results/demo")).run(name)


@pytest.mark.parametrize("name", [*OUTSIDE, "-a/b", "a/-b"])
def test_names_of_imported_runs_are_checked_where_they_are_given(name: str) -> None:
    with refused("invalid-run-id", name=name):
        check_sample_names("gsm8k", name, 0)
    settings = yaml.safe_load((ROOT / "config" / "config.yaml").read_text()) | {"imported": [name]}
    with refused("schema-broken"):
        validate(settings, "config", ROOT / "config" / "config.yaml")
