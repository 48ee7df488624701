"""One process at a time uses a work folder: with real processes and kernel locks."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from contracts import work_lock
from contracts.errors import UserError
from contracts.run_file import ROOT

HOLDS = """
import sys, time
from pathlib import Path
from contracts import work_lock
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


def test_a_second_process_is_refused_and_a_killed_one_holds_nothing(
    tmp_path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_lock, "PATIENCE_SECONDS", 0.5)
    with pytest.raises(UserError, match="another process is training"), work_lock.sole_user(tmp_path, "training"):
        pass
    holder.kill()
    holder.wait()
    with work_lock.sole_user(tmp_path, "training"):
        pass
    with work_lock.sole_user(tmp_path, "training"):
        pass


def test_a_process_that_is_ending_gets_time(tmp_path: Path) -> None:
    ghost = subprocess.Popen(["flock", tmp_path / ".lock", "sleep", "1"])
    while not (tmp_path / ".lock").exists():
        time.sleep(0.05)
    with work_lock.sole_user(tmp_path, "training"):
        pass
    assert ghost.wait() == 0
