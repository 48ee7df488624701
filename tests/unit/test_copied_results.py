"""Copied artefacts get the times in their records; others keep theirs."""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts import copied_results, provenance

MADE = 1_750_000_000.0


def record(path: Path, time: float = MADE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"made_at": datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds"), "b": 1}))
    return path


def test_a_copied_file_and_a_copied_folder_are_as_old_as_they_say(tmp_path: Path) -> None:
    file, folder = tmp_path / "data/train/a.parquet", tmp_path / "models/demo"
    record(tmp_path / "data/train/a.parquet.provenance.json")
    record(folder / "provenance.json", MADE + 60)
    for path in (file, folder / ".snakemake_timestamp"):
        path.touch()
    assert copied_results.restore_times(tmp_path) == 2
    assert file.stat().st_mtime == MADE
    assert folder.stat().st_mtime == (folder / ".snakemake_timestamp").stat().st_mtime == MADE + 60
    assert copied_results.restore_times(tmp_path) == 0


def test_a_folder_of_tables_is_as_old_as_the_newest_of_them(tmp_path: Path) -> None:
    samples = tmp_path / "runs/r/samples"
    record(samples / "step-0/a.parquet.provenance.json", MADE + 5)
    record(samples / "step-1/a.parquet.provenance.json", MADE + 7)
    record(samples / "step-1/b.parquet.provenance.json", MADE + 6)
    (samples / ".snakemake_timestamp").touch()
    copied_results.restore_times(tmp_path)
    assert (samples / ".snakemake_timestamp").stat().st_mtime == MADE + 7


@pytest.mark.parametrize("stamp", [True, False])
def test_a_folder_of_imported_tables_from_the_future_is_not(tmp_path: Path, stamp: bool) -> None:
    """After a clock is set back, all that is made of it would be older."""
    record(tmp_path / "runs/r/samples/step-0/a.parquet.provenance.json")
    samples, future = tmp_path / "runs/r/samples", time.time() + 9e6
    if stamp:
        (samples / ".snakemake_timestamp").touch()
    os.utime(samples, (future, future))
    copied_results.restore_times(tmp_path)
    assert samples.stat().st_mtime <= time.time()


def test_what_was_not_copied_keeps_its_time_even_if_it_was_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    file.write_text("made")
    provenance.write(file, rows=1)
    file.write_text("replaced")
    os.utime(file, (2e9, 2e9))
    assert copied_results.restore_times(tmp_path) == 0 and file.stat().st_mtime == 2e9


def test_a_damaged_record_and_a_missing_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.parquet.provenance.json").write_bytes(b"\xff{")
    (tmp_path / "b.parquet.provenance.json").write_text('{"made_at": "yesterday"}')
    (tmp_path / "c.parquet.provenance.json").write_text("{}")
    assert copied_results.restore_times(tmp_path) == 0
    assert copied_results.restore_times(tmp_path / "no such folder") == 0


def test_a_copy_without_times_and_hidden_files_is_as_old_as_it_was(tmp_path: Path) -> None:
    samples = tmp_path / "runs/r/samples"
    record(samples / "step-0/a.parquet.provenance.json", MADE + 5)
    record(samples / "step-1/a.parquet.provenance.json", MADE + 7)
    copied_results.restore_times(tmp_path)
    assert samples.stat().st_mtime == MADE + 7


def test_a_link_to_what_was_moved_is_as_old_as_that(tmp_path: Path) -> None:
    results, elsewhere = tmp_path / "results", tmp_path / "elsewhere"
    record(results / "runs/r/checkpoints/step-24/provenance.json")
    record(results / "runs/r/samples/step-24/a.parquet.provenance.json", MADE + 5)
    (results / "runs/r/samples/step-24/a.parquet").touch()
    copied_results.restore_times(results)
    for name in ("checkpoints/step-24", "samples"):
        (there := elsewhere / name).parent.mkdir(parents=True, exist_ok=True)
        (here := results / "runs/r" / name).rename(there)
        here.symlink_to(there)
    copied_results.restore_times(results)
    assert (results / "runs/r/checkpoints/step-24").lstat().st_mtime == MADE
    assert (results / "runs/r/samples").lstat().st_mtime == MADE + 5
    (results / "runs/loop").symlink_to(results)
    copied_results.restore_times(results)


def test_the_files_of_a_copied_model_are_not_taken_for_replaced_ones(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    record(tmp_path / "models/demo/provenance.json")
    (file := tmp_path / "models/demo/model.safetensors").touch()
    copied_results.restore_times(tmp_path)
    assert file.stat().st_mtime == MADE
