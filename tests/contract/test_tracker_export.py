"""What a framework logs to Weights & Biases, offline, exported as CSV and imported."""

from __future__ import annotations

import csv
import os
import subprocess
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from envs.build import python
from frameworks import import_log
from tests import needs
from tests.warm_python import warm_python

PYTHON = python("verl")
pytestmark = [
    pytest.mark.contract,
    pytest.mark.slow,
    needs.environments("verl"),
]
# The CSV is what the service's `run.history()` gives of the records in the offline file.
SCRIPT = """
import json, struct, sys
from pathlib import Path
import pandas
import wandb
from verl.utils.tracking import Tracking
tracking = Tracking("project", "mine", default_backend=["wandb", "console"])
for step in (1, 2, 3):
    tracking.log({"critic/score/mean": step / 4, "response_length/mean": 10.0 * step, "timing_s/step": 2.0,
                  "perf/total_num_tokens": 100, "training/global_step": step}, step=step)
tracking.finish()
wandb.teardown()  # waits for the process that writes the file
from wandb.proto.wandb_internal_pb2 import Record
(file,) = Path(sys.argv[1]).rglob("*.wandb")
written, place, whole, rows = file.read_bytes(), 7, b"", []
while place < len(written):  # LevelDB's log: blocks of 32 KiB, in them checksum, length, kind and data
    if 2**15 - place % 2**15 < 7:
        place += 2**15 - place % 2**15
        continue
    length, kind = struct.unpack("<HB", written[place + 4 : place + 7])
    whole, place = whole + written[place + 7 : place + 7 + length], place + 7 + length
    if kind in (1, 4):  # full, or the last part
        record, whole = Record.FromString(whole), b""
        if record.HasField("history"):
            items = record.history.item
            rows.append({item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items})
pandas.DataFrame(rows).to_csv(sys.argv[2])
"""


def test_an_export_of_weights_and_biases(tmp_path: Path) -> None:
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    export = tmp_path / "export.csv"
    done = subprocess.run(
        [warm_python("verl"), "-c", SCRIPT, tmp_path, export],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with export.open() as file:
        assert "critic/score/mean" in next(csv.reader(file))
    rows = import_log.read([export], "verl", "imported/mine")
    assert [(row["step"], row["reward_mean"], row["response_length_mean"]) for row in rows] == [
        (1, 0.25, 10.0), (2, 0.5, 20.0), (3, 0.75, 30.0),
    ]  # fmt: skip
    assert [(row["wall_time"], row["tokens_per_second"]) for row in rows] == [(2.0, 50.0), (4.0, 50.0), (6.0, 50.0)]
    console = tmp_path / "console.txt"
    console.write_text(done.stdout)
    printed = import_log.read([console], "verl", "imported/mine")
    assert [row["reward_mean"] for row in printed] == [0.25, 0.5, 0.75]
