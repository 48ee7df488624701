"""One process at a time uses a work folder: with real processes and kernel locks."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from system import work_lock
from tests.user_errors import refused

HOLDS = """
import sys, time
from pathlib import Path
from system import work_lock
with work_lock.sole_user(Path(sys.argv[1]), "training"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    """Another process that holds the folder's lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS, tmp_path], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


@pytest.mark.slow
def test_a_second_process_is_refused_and_a_killed_one_holds_nothing(
    tmp_path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_lock, "PATIENCE_SECONDS", 0.5)
    with refused("folder-locked"), work_lock.sole_user(tmp_path, "training"):
        pass
    holder.kill()
    holder.wait()
    with work_lock.sole_user(tmp_path, "training"):
        pass
    with work_lock.sole_user(tmp_path, "training"):
        pass


@pytest.mark.slow
def test_a_process_that_is_ending_gets_time(tmp_path: Path) -> None:
    ghost = subprocess.Popen(["flock", tmp_path / ".lock", "sleep", "1"])
    while not (tmp_path / ".lock").exists():
        time.sleep(0.05)
    with work_lock.sole_user(tmp_path, "training"):
        pass
    assert ghost.wait() == 0


WRITES = """
import sys, time
from pathlib import Path
from system import work_lock
folders = work_lock.Folders([Path(name) for name in sys.argv[2:]])
print("made", flush=True)
sys.stdin.readline()
try:
    folders.acquire()
except work_lock.UserError as error:
    sys.exit(str(error))
print("held", flush=True)
if sys.argv[1] == "stay":
    sys.stdin.readline()
"""


def workflow(how: str, *folders: Path) -> subprocess.Popen[str]:
    """A process that has made its object, and goes on to lock the folders when it is sent a line."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", WRITES, how, *folders], cwd=ROOT, text=True, **pipes)
    assert process.stdout is not None and process.stdout.readline() == "made\n"
    return process


@pytest.mark.slow
def test_workflows_that_share_one_folder_exclude_each_other(tmp_path: Path) -> None:
    first = workflow("stay", tmp_path / "work-1", tmp_path / "results")
    assert first.stdin is not None and first.stdout is not None
    first.stdin.write("\n")
    first.stdin.flush()
    assert first.stdout.readline() == "held\n"
    (tmp_path / "link").symlink_to(tmp_path / "results")
    for folder in (tmp_path / "results", tmp_path / "link"):
        second = workflow("go", tmp_path / "work-2", folder)
        _, said = second.communicate("\n")
        assert second.returncode == 1 and f"another snakemake uses the folder {tmp_path / 'results'}" in said
        assert f"process {first.pid}" in said
    other = workflow("go", tmp_path / "work-2", tmp_path / "other-results")
    assert other.communicate("\n")[0] == "held\n"
    first.kill()
    first.communicate()
    after = workflow("go", tmp_path / "work-3", tmp_path / "results")
    assert after.communicate("\n")[0] == "held\n"  # a killed one holds nothing


@pytest.mark.slow
def test_a_workflow_is_refused_if_another_one_wrote_while_it_was_starting(tmp_path: Path) -> None:
    late = workflow("go", tmp_path)
    assert workflow("go", tmp_path).communicate("\n")[0] == "held\n"
    _, said = late.communicate("\n")
    assert late.returncode == 1 and "run the same command again" in said
    assert workflow("go", tmp_path).communicate("\n")[0] == "held\n"
    assert workflow("go", tmp_path, tmp_path).communicate("\n")[0] == "held\n"  # work and results may be one folder
