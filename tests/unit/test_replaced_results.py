"""Results replaced by hand are noticed where they are read, and before a workflow says that nothing is to be done."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest

from analysis import load_results
from contracts import copied_results, paths, provenance, tables
from tests.user_errors import refused


def sample_table(samples: Path, step: int, completion: str = "5", benchmark: str = "sums") -> Path:
    row = dict.fromkeys(tables.SAMPLE.names) | {"run": "r/seed-0", "step": step, "benchmark": benchmark}
    row |= {"problem_id": "a", "repeat": 0, "completion": completion}
    file = paths.table(samples, step, benchmark)
    tables.write(pa.Table.from_pylist([row], tables.SAMPLE), tables.SAMPLE, file)
    provenance.write(file, run="r/seed-0", step=step)
    return file


def replace(file: Path, by: Path) -> None:
    """Another content of the same time."""
    times = file.stat()
    shutil.copyfile(by, file)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_replaced_table_is_noticed_where_it_is_read(tmp_path: Path) -> None:
    file, other = sample_table(tmp_path / "samples", 24), sample_table(tmp_path / "other", 24, "6")
    assert len(tables.read(file, tables.SAMPLE)) == 1
    assert file.stat().st_size == other.stat().st_size
    replace(file, other)
    with refused("artefact-changed", path=str(file)):
        tables.read(file, tables.SAMPLE, ["completion"])


@pytest.mark.parametrize(("step", "name"), [(0, "sums"), (24, "products")])
def test_another_table_with_its_record_is_refused_in_its_place(tmp_path: Path, step: int, name: str) -> None:
    file, other = sample_table(tmp_path, 24), sample_table(tmp_path, step, benchmark=name)
    shutil.copy2(other, file)
    shutil.copy2(paths.record(other), paths.record(file))
    with refused("other-table"):
        tables.read(file, tables.SAMPLE, ["completion"])


def test_a_table_that_is_made_again_has_no_record_until_it_is_written(tmp_path: Path) -> None:
    file = sample_table(tmp_path, 24)
    tables.write(tables.SAMPLE.empty_table(), tables.SAMPLE, file)
    assert not paths.record(file).exists() and len(tables.read(file, tables.SAMPLE)) == 0


def test_verdicts_replaced_with_their_record_are_noticed_by_their_scores(tmp_path: Path) -> None:
    folder = paths.RunFolder(tmp_path)
    (file := paths.table(folder.graded, 0, "sums")).parent.mkdir(parents=True)
    file.write_text("verdicts")
    where = "results/elsewhere/graded/step-0/sums.parquet"
    provenance.write(folder.scores, scored=[{"graded": where, "graded_sha256": provenance.sha256(file)}])
    load_results._check_scored(folder, [file])
    file.write_text("others!!")
    with refused("artefact-changed", path=str(file)):
        load_results._check_scored(folder, [file])


def later(file: Path, seconds: float) -> None:
    os.utime(file, (time.time() + seconds, time.time() + seconds))


def model(folder: Path) -> Path:
    (folder / ".cache").mkdir(parents=True)
    (folder / "model.safetensors").write_text("weights")
    (folder / "chat_template.jinja").write_text("template")
    provenance.write(folder, sha256=provenance.sha256(folder))
    return folder


@pytest.mark.parametrize("name", ["model.safetensors", "chat_template.jinja", "added.json"])
def test_a_replaced_part_of_a_model_is_noticed_before_anything_starts(tmp_path: Path, name: str) -> None:
    file = model(tmp_path / "runs/r/checkpoints/step-24") / name
    copied_results.check_unchanged(tmp_path)
    if file.exists():
        later(file, 3600)  # touched
        copied_results.check_unchanged(tmp_path)
    file.write_text("another")
    later(file, 3600)
    with refused("artefact-changed"):
        copied_results.check_unchanged(tmp_path)


def test_a_replaced_table_is_noticed_before_anything_starts(tmp_path: Path) -> None:
    file = sample_table(tmp_path / "runs/r/samples", 24)
    replace(file, sample_table(tmp_path / "other", 24, "6"))
    later(file, 3600)
    with refused("artefact-changed"):
        copied_results.check_unchanged(tmp_path)
    paths.record(file).unlink()  # it is taken as it is
    copied_results.check_unchanged(tmp_path)
