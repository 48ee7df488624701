"""Two steps by each framework's own command, for real on the CPU: to its end, timed, and with nothing of ours in it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from contracts.run_file import framework_names
from tests import needs
from tests.contract import tiny_project
from tests.waiting import WORKFLOW_LIMIT

pytestmark = [pytest.mark.contract, pytest.mark.long]


@pytest.mark.parametrize("framework", framework_names())
def test_two_steps_by_the_framework_s_own_command(tmp_path: Path, framework: str) -> None:
    needs.skip_without(framework)
    project = tiny_project.make(
        tmp_path / "project", framework, "grpo", steps=2, checkpoints=[2], optimizer={"learning_rate": 1e-3},
        objective={"kl_coefficient": 0.0},
    )  # fmt: skip
    command = tiny_project.command(
        project, "bare", "--problems", "problems.parquet", "--output", "bare.json", framework=framework
    )
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=WORKFLOW_LIMIT)
    assert done.returncode == 0, done.stderr
    measured = json.loads((project / "bare.json").read_text())
    assert 0 < sum(measured["parts"].values()) < measured["seconds"]
    assert (len(measured["parts"]) == 1) == (framework == "trl")  # which has no timers of its own
    assert not (project / tiny_project.WORK).exists()
