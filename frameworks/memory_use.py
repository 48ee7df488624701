"""How much memory a training takes, and how busy its GPUs are, seen from outside.

Memory of the host is the proportional set size of the job's processes: what several of them share counts once in all.
Of what forks share with the process that had imported it, which serves other jobs too, they count their part. GPUs are
those that the job's commands see, by NVML; all that is on them counts.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from system import fork_server

GB = 1e9
SECONDS = 1.0  # between two looks at the GPUs, and at the least between two at the host
LOOKING_SHARE = 0.01  # of the time, for looks at the host at the most: /proc walks through the memory of each process


def processes_below(root: int) -> list[int]:
    """A process and all that it has started, directly or not."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended; its name may be any bytes
            parents[int(entry.parent.name)] = int(entry.read_bytes().rpartition(b")")[2].split()[1])
    members, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in members} - members
        members, grown = members | more, bool(more)
    return sorted(members)


def host_bytes(root: int) -> int:
    """The proportional set size of a process and all below it."""
    total = 0
    for pid in processes_below(root):
        with suppress(OSError):  # it has ended, or is another user's
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_bytes()
            total += 1024 * sum(int(line.split()[1]) for line in rollup.split(b"\n") if line.startswith(b"Pss:"))
    return total


def visible_gpus(environments: Sequence[Mapping[str, str]]) -> list[Any]:
    """NVML's handles of the GPUs that processes with these environments see; none where there is no NVML."""
    try:
        import pynvml

        pynvml.nvmlInit()
        seen = [environment.get("CUDA_VISIBLE_DEVICES") for environment in environments]
        stated = [names for names in seen if names is not None]
        if len(stated) < len(seen):
            return [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
        return [
            pynvml.nvmlDeviceGetHandleByIndex(int(name)) if name.isdecimal() else pynvml.nvmlDeviceGetHandleByUUID(name)
            for name in dict.fromkeys(map(str.strip, ",".join(stated).split(",")))
            if name
        ]
    except Exception:  # no library, no driver, or a name that it does not know: then nothing is measured
        return []


class Watch:
    """Looks at memory and GPUs in a thread while a trainer runs."""

    def __init__(self, environments: Sequence[Mapping[str, str]]) -> None:
        """Start to look; the environments are those of the trainer and of its servers."""
        # A fork's siblings are the trainer's processes: their common parent has imported what they share.
        self._root = os.getppid() if fork_server.is_fork() else os.getpid()
        self._gpus = visible_gpus(environments)
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._peaks: dict[str, float] = {}
        self._busy: list[float] = []
        threading.Thread(target=self._look_often, daemon=True).start()

    def take(self) -> dict[str, float]:
        """The columns since the last call: peaks in GB (of all GPUs together), and the mean share of busy GPU time.

        A column is missing where there was no look. None is made now: it would see each step at its end alone.
        """
        with self._lock:
            taken = dict(self._peaks)
            if self._busy:
                taken["gpu_utilisation"] = sum(self._busy) / len(self._busy)
            self._peaks, self._busy = {}, []
        return taken

    def end(self) -> None:
        """Look no more."""
        self._ended.set()

    def _look_often(self) -> None:
        host_at = 0.0
        while not self._ended.wait(SECONDS):
            if self._gpus:
                self._look_at_gpus()
            if time.monotonic() >= host_at:
                began = time.thread_time()
                self._note("host_memory_gb", host_bytes(self._root))
                host_at = time.monotonic() + (time.thread_time() - began) / LOOKING_SHARE

    def _look_at_gpus(self) -> None:
        import pynvml

        with suppress(pynvml.NVMLError):  # a GPU in slices, or one that was lost: then it is not known
            self._note("gpu_memory_gb", sum(pynvml.nvmlDeviceGetMemoryInfo(gpu).used for gpu in self._gpus))
            busy = [pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100 for gpu in self._gpus]
            with self._lock:
                self._busy += busy

    def _note(self, column: str, size: float) -> None:
        with self._lock:
            self._peaks[column] = max(size / GB, self._peaks.get(column, 0.0))
