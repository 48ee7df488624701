"""Which GPUs processes of one machine take: real processes, real locks, pretended GPUs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.run_file import ROOT
from system import gpu_locks
from tests.user_errors import refused

TAKES = """
import sys
from pathlib import Path
from system import gpu_locks
print(",".join(gpu_locks.take(int(sys.argv[1]), "a run", Path(sys.argv[2]))), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def four(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,GPU-d4")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    yield
    for name in list(gpu_locks._held):
        gpu_locks._held.pop(name).release()


def process(count: int, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", TAKES, str(count), str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.slow
def test_no_gpu_is_taken_twice_and_those_of_a_killed_process_are_free(tmp_path: Path) -> None:
    first, second = process(2, tmp_path), process(1, tmp_path)
    try:
        taken = [*line(first).split(","), *line(second).split(",")]
        mine = gpu_locks.take(1, "this", tmp_path)
        assert sorted([*taken, *mine]) == ["0", "1", "2", "GPU-d4"]
        third = process(2, tmp_path)
        assert line(third) == "a run waits for 2 of 4 GPUs: other processes hold them"
        first.kill()
        assert sorted(line(third).split(",")) == sorted(taken[:2])
        third.kill()
        third.wait()
    finally:
        for one in (first, second):
            one.kill()
            one.wait()


def test_more_than_there_are(tmp_path: Path) -> None:
    with refused("too-few-gpus"):
        gpu_locks.take(8, "r/x", tmp_path)


def test_in_a_slurm_job_all_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert gpu_locks.take(2, "a run", tmp_path) == ["0", "1", "2", "GPU-d4"]
    assert not list(tmp_path.iterdir())


def test_no_gpus_and_no_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused("too-few-gpus"):
        gpu_locks.take(1, "a run", tmp_path)
