"""A release of math-verify, tried with the real judge beside the base environment, and accepted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from envs import build, pins
from system.project_copy import copy_project

pytestmark = [pytest.mark.contract, pytest.mark.slow, pytest.mark.long]

NEW = "0.9.0"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project whose new environment is built in it."""
    folder = tmp_path_factory.mktemp("upgrade") / "project"
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", f"math-verify=={NEW}", "-d", folder.parent]
    if subprocess.run(download, capture_output=True, check=False).returncode:
        pytest.skip("needs the wheel math-verify from a package index")
    (folder / ".envs").mkdir(parents=True)
    for environment in (build.folder("base", "cpu"), build.uv().parent.parent):
        (folder / ".envs" / environment.name).symlink_to(environment)
    copy_project(folder)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder


def crosszero(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli.main", "upgrade", "math-verify", NEW, "--environment", "base", *options]
    environment = {**os.environ, "PYTHONPATH": str(project)}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_the_judge_gives_the_same_verdicts_and_the_release_is_accepted(project: Path) -> None:
    before = {file: file.read_bytes() for file in (project / "envs").rglob("*") if file.is_file()}
    tried = crosszero(project)
    assert tried.returncode == 0, tried.stdout + tried.stderr
    folder = project / "work" / "upgrade" / f"math-verify-{NEW}"
    verdicts = json.loads((folder / "outcomes" / "verdicts-base.json").read_text())["data"]
    pairs = (ROOT / "tests" / "unit" / "answer_pairs.jsonl").read_text().count("\n")
    assert verdicts == {"verdicts": [], "pairs": pairs}
    assert "All 3 steps are done" in (folder / "index.html").read_text()
    assert {file: file.read_bytes() for file in before} == before
    again = crosszero(project)
    assert again.stdout.count("done before") == 3
    accepted = crosszero(project, "--accept")
    assert accepted.returncode == 0, accepted.stderr
    for lock in (project / "envs" / "base").glob("*.lock"):
        assert pins.locked_versions(lock)["math-verify"] == NEW
    changed = {file.relative_to(project / "envs").parts[0] for file in before if file.read_bytes() != before[file]}
    assert changed == {"base"}
