"""One Snakemake at a time writes to a work or results folder: the real Snakefile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import filelock
import pytest

from contracts.run_file import ROOT
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def start(folder: Path, target: str, work: str = "work", programs: str = "") -> subprocess.Popen[str]:
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["snakemake", target, "--config", f"work={folder}/{work}", f"results={folder}/results"]
    return subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def is_locked(file: Path) -> bool:
    """Whether a process holds a lock on the file; looking does not take it."""
    inode = f":{file.stat().st_ino} " if file.exists() else "none"
    return inode in Path("/proc/locks").read_text()


def test_a_work_folder_is_locked_while_a_snakemake_writes_to_it(tmp_path: Path) -> None:
    """Its job waits in the shell that it starts with, until the test has looked."""
    waits, started = tmp_path / "waits", tmp_path / "started"
    waits.touch()
    shell = tmp_path / "programs" / "bash"
    shell.parent.mkdir()
    wait = f"touch {started}; while [ -e {waits} ]; do sleep 0.05; done"
    shell.write_text(f'#!/bin/sh\n{wait}; exec {shutil.which("bash")} "$@"\n')
    shell.chmod(0o755)
    process = start(tmp_path, "job_kinds", programs=str(shell.parent))
    locks = [tmp_path / name / "demo" / ".lock" for name in ("work", "results")]
    wait_until(lambda: started.exists() or process.poll() is not None)
    assert [is_locked(lock) for lock in locks] == [True, True]
    waits.unlink()
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert [is_locked(lock) for lock in locks] == [False, False]


@pytest.mark.parametrize("shared", ["work", pytest.param("results", marks=pytest.mark.long)])
def test_a_second_snakemake_is_refused_unless_it_writes_nothing(tmp_path: Path, shared: str) -> None:
    (folder := tmp_path / shared / "demo").mkdir(parents=True)
    with filelock.FileLock(folder / ".lock"):
        output, _ = (refused := start(tmp_path, "job_kinds")).communicate()
        assert refused.returncode == 1 and f"another snakemake uses the folder {folder}" in output
        output, _ = (allowed := start(tmp_path, "help")).communicate()
        assert allowed.returncode == 0, output


@pytest.mark.long
def test_snakemakes_started_one_after_another_run_a_job_once(tmp_path: Path) -> None:
    """With work folders of their own and one results folder, until one of them says that nothing is to be done."""
    target, outputs, running = f"{tmp_path}/results/demo/data/benchmarks/arithmetic_words.parquet", list[str](), []
    for number in range(4):
        running.append(start(tmp_path, target, work=f"work-{number}"))
        time.sleep(1.5)
    for process in running:
        output, _ = process.communicate()
        outputs.append(output)
        assert "Traceback" not in output, output
    finished = [process.returncode == 0 and "Nothing to be done" not in output
                for process, output in zip(running, outputs, strict=True)]  # fmt: skip
    assert sum(finished) == 1, outputs
    assert sum("rule problems:" in output for output in outputs) == 1, outputs
    for process, output in zip(running, outputs, strict=True):
        assert process.returncode == 0 or "another snakemake use" in output, output
