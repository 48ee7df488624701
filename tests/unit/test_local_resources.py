"""One Snakemake at a time writes to a work folder: the real Snakefile."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import filelock
import pytest

from contracts.run_file import ROOT

pytestmark = pytest.mark.slow


def start(folder: Path, target: str) -> subprocess.Popen[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ["snakemake", target, "--config", f"work={folder}/work", f"results={folder}/results"]
    return subprocess.Popen(
        words, cwd=ROOT, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def is_locked(file: Path) -> bool:
    """Whether a process holds a lock on the file; looking does not take it."""
    inode = f":{file.stat().st_ino} " if file.exists() else "none"
    return inode in Path("/proc/locks").read_text()


def test_a_work_folder_is_locked_while_a_snakemake_writes_to_it(tmp_path: Path) -> None:
    process, looks = start(tmp_path, "job_kinds"), 0
    while process.poll() is None:
        looks += is_locked(tmp_path / "work" / "demo" / ".lock")
        time.sleep(0.02)
    assert process.returncode == 0, process.communicate()
    assert looks >= 10  # for as long as the job runs, which starts an interpreter


def test_a_second_snakemake_is_refused_unless_it_writes_nothing(tmp_path: Path) -> None:
    (folder := tmp_path / "work" / "demo").mkdir(parents=True)
    with filelock.FileLock(folder / ".lock"):
        output, _ = (refused := start(tmp_path, "job_kinds")).communicate()
        assert refused.returncode == 1 and f"another snakemake uses the folder {folder}" in output
        output, _ = (allowed := start(tmp_path, "help")).communicate()
        assert allowed.returncode == 0, output
