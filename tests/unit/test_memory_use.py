"""Memory of a training: what its processes have, what they share counted once, and what is on its GPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import SimpleNamespace

import pytest

from frameworks import memory_use
from tests.waiting import wait_until

SIZE = 200_000_000
HOLDS = f"block = bytearray({SIZE}); block[::4096] = b'x' * len(block[::4096])\n"
WAITS = "print('ready', flush=True); input()\n"
FORKS = "import os\nfor _ in range(3):\n    if not os.fork(): input()\n"


@contextmanager
def process(program: str) -> Iterator[int]:
    """The number of a process that has come to WAITS."""
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None and running.stdout.readline() == "ready\n"
        yield running.pid
    finally:
        running.communicate()  # closes its input, and its forks' with it


@pytest.mark.slow
@pytest.mark.parametrize("program", [HOLDS + WAITS, HOLDS + FORKS + WAITS], ids=["one", "forks"])
def test_what_processes_share_counts_once(program: str) -> None:
    with process(program) as pid:
        assert SIZE < memory_use.host_bytes(pid) < 1.5 * SIZE


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_use, "SECONDS", 0.001)


def columns_of(*environments: dict[str, str]) -> dict[str, float]:
    """What a watch has seen of GPUs when it has looked at the host, which is after them."""
    used: dict[str, float] = {}
    with closing(SimpleNamespace(close=(watch := memory_use.Watch(environments)).end)):
        while "host_memory_gb" not in used:
            used |= wait_until(watch.take)
    assert used.pop("host_memory_gb") > 0.01
    return used


def test_gpus_are_those_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(
        NVMLError=RuntimeError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetHandleByUUID=lambda name: {"GPU-5": 5}[name],
        nvmlDeviceGetCount=lambda: 8,
        nvmlDeviceGetMemoryInfo=lambda gpu: SimpleNamespace(used=gpu * 10**9),
        nvmlDeviceGetUtilizationRates=lambda gpu: SimpleNamespace(gpu=10 * gpu),
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    trainer, server = {"CUDA_VISIBLE_DEVICES": "3,GPU-5"}, {"CUDA_VISIBLE_DEVICES": "1, 3"}
    assert columns_of(trainer) == {"gpu_memory_gb": 8.0, "gpu_utilisation": pytest.approx(0.4)}
    assert columns_of(trainer, server) == {"gpu_memory_gb": 9.0, "gpu_utilisation": pytest.approx(0.3)}
    assert memory_use.visible_gpus([{}]) == memory_use.visible_gpus([trainer, {}]) == list(range(8))
    assert memory_use.visible_gpus([{"CUDA_VISIBLE_DEVICES": "GPU-unknown"}]) == []
    assert memory_use.visible_gpus([{"CUDA_VISIBLE_DEVICES": ""}]) == []


def test_a_gpu_that_tells_nothing_ends_no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(gpu: int) -> None:
        raise ValueError(gpu)

    library = SimpleNamespace(
        NVMLError=ValueError, nvmlInit=lambda: None, nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetMemoryInfo=silent, nvmlDeviceGetUtilizationRates=silent,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pynvml", library)
    assert columns_of({"CUDA_VISIBLE_DEVICES": "0"}) == {}


def test_a_process_may_have_any_name() -> None:
    named = f"import ctypes; ctypes.CDLL(None).prctl(15, {b'new line) 1 ' + bytes([255])!r}, 0, 0, 0)\n"
    with process(named + WAITS):
        assert len(memory_use.processes_below(os.getpid())) > 1
