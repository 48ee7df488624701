"""The picture of a workflow's jobs, from what the real Snakemake keeps of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from analysis import timeline
from tests.user_errors import refused

LONG = "results/demo/runs/recipe/run/seed-0/stage-1/" + "x" * 180
SNAKEFILE = f"""
rule all:
    input: "{LONG}", ".envs/trl/.stamp"

rule train:
    input: ".envs/trl/.stamp"
    output: "{LONG}"
    shell: "sleep 1; touch {{output}}"

rule environment:
    output: ".envs/trl/.stamp"
    shell: "touch {{output}}"
"""


@pytest.mark.slow
def test_jobs_and_their_picture(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet", "all"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    table = timeline.read_jobs(tmp_path / timeline.METADATA)
    assert list(table["label"]) == ["environment trl", "train recipe/run stage-1"]
    assert table["start"][0] == 0 and table["end"][0] <= table["start"][1] <= table["end"][1] - 1
    picture = tmp_path / "timeline.png"
    timeline.plot_jobs(table, 0.5, picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_folder_without_a_workflow(tmp_path: Path) -> None:
    with refused("no-jobs-recorded"):
        timeline.read_jobs(tmp_path)
