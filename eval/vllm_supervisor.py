"""The vLLM processes of a plan: started, watched, and restarted with smaller batches when memory runs out."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eval import sample_journal, vllm_settings
from eval.vllm_worker import OUT_OF_MEMORY
from frameworks import loopback
from system import durable, fork_server, gpu_locks, private_folder
from system.errors import UserError
from system.quiet_time import QuietTime

ATTEMPTS = 4
FIRST_BATCH = 256  # where no max_num_seqs was set; the first failure halves it
LONGEST_FOLDER = 40  # below it vLLM has sockets, whose paths may have 107 bytes
SECONDS_BETWEEN_LOOKS = 0.5


class ProgressLine:
    """A line on stderr: samples done and wanted, samples per second over the last minute, and the time left."""

    def __init__(self, wanted: int, folders: list[Path]) -> None:
        """Follow the samples in these folders until there are `wanted`."""
        self.wanted = wanted
        self._counter = sample_journal.SampleCounter(folders)
        self._recent: deque[tuple[float, int]] = deque(maxlen=120)
        self._every = 0.5 if sys.stderr.isatty() else 10.0
        self._shown = time.monotonic()

    def show(self, *, last: bool = False) -> None:
        """Count and write the line, if it is time to."""
        now = time.monotonic()
        if not last and now - self._shown < self._every:
            return
        done = self._counter.count()
        self._recent.append((now, done))
        while len(self._recent) > 2 and now - self._recent[0][0] > 60:
            self._recent.popleft()
        (start, before), self._shown = self._recent[0], now
        rate = (done - before) / (now - start) if done > before else 0.0
        left = f", {_clock((self.wanted - done) / rate)} left" if rate and done < self.wanted else ""
        text = f"generate: {done}/{self.wanted} samples{f', {rate:.1f} samples/s' if rate else ''}{left}"
        end = "\n" if last or not sys.stderr.isatty() else ""
        print(f"\r{text:<79}" if sys.stderr.isatty() else text, end=end, file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def devices(data_parallel: int, tensor_parallel: int) -> list[str]:
    """CUDA_VISIBLE_DEVICES of each process; see system.gpu_locks.take."""
    what = f"generating with --data-parallel {data_parallel} and --tensor-parallel {tensor_parallel}"
    taken = gpu_locks.take(data_parallel * tensor_parallel, what)
    return [",".join(taken[i * tensor_parallel : (i + 1) * tensor_parallel]) for i in range(data_parallel)]


def _start(plan: dict[str, Any], plan_file: Path, index: int, temporary: Path) -> subprocess.Popen[bytes]:
    settings = {**os.environ, **vllm_settings.environment(plan["device"]), **loopback.environment(temporary)}
    if plan["device"] == "cuda":
        settings["CUDA_VISIBLE_DEVICES"] = plan["gpus"][index]
    heartbeat = plan_file.with_name(f"heartbeat-{index}")
    heartbeat.touch()
    # It has its own process group and watches this pipe: see eval.vllm_worker.end_with_supervisor.
    command = fork_server.forked_command([sys.executable, "-m", "eval.vllm_worker", str(plan_file), str(index)])
    return subprocess.Popen(command, env=settings, stdin=subprocess.PIPE, start_new_session=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and what it started: even a dead one may have left vLLM's engine process holding its GPU."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _watch(plan: dict[str, Any], plan_file: Path, line: ProgressLine, stall_seconds: float) -> list[int]:
    """Run the processes to their end and return their exit statuses; one that makes no progress is an error."""
    running: dict[int, subprocess.Popen[bytes]] = {}
    statuses: dict[int, int] = {}
    beats: dict[int, int] = {}
    quiet = {index: QuietTime(SECONDS_BETWEEN_LOOKS) for index in range(plan["processes"])}
    temporary = private_folder.new("vllm", longest=LONGEST_FOLDER)
    try:
        running |= {index: _start(plan, plan_file, index, temporary) for index in range(plan["processes"])}
        while running:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            line.show()
            for index, process in list(running.items()):
                if process.poll() is not None:
                    _end(running.pop(index))
                    statuses[index] = process.returncode
                    continue
                beat = plan_file.with_name(f"heartbeat-{index}").stat().st_mtime_ns
                if beats.get(index) != beat:
                    beats[index] = beat
                    quiet[index].restart()
                if quiet[index].seconds() > stall_seconds:
                    raise UserError(
                        f"vLLM process {index} made no progress for {stall_seconds:.0f} s and was ended; its samples "
                        "are kept. If the model needs longer to load, raise --stall-seconds",
                        code="generation-stalled",
                        process=index,
                    )
    finally:
        for process in running.values():
            _end(process)
        shutil.rmtree(temporary, ignore_errors=True)
    return list(statuses.values())


def run(make_plan: Callable[[], dict[str, Any]], work: Path, line: ProgressLine, stall_seconds: float) -> None:
    """Run plans until nothing is missing.

    Args:
        make_plan: returns what is still missing, in which folders, with which engine (see eval.generate).
        work: folder of the plan and the heartbeats.
        line: shows the progress.
        stall_seconds: longest time a process may make no progress, loading a model included.

    Raises:
        UserError: a process failed, stalled, or ran out of memory ATTEMPTS times.
    """
    batch: int | None = None
    for _ in range(ATTEMPTS):
        plan = make_plan()
        if not plan["jobs"]:
            return
        if batch is not None:
            plan["engine"]["max_num_seqs"] = batch
        plan_file = work / "plan.json"
        durable.write_text(plan_file, json.dumps(plan))
        statuses = _watch(plan, plan_file, line, stall_seconds)
        failed = [status for status in statuses if status not in (0, OUT_OF_MEMORY) and status >= 0]
        if failed:
            raise UserError(
                f"a vLLM process ended with status {failed[0]}; its messages are above. Finished samples are kept: fix "
                "the cause and run the same command again",
                code="generation-failed",
                status=failed[0],
            )
        if not any(statuses):
            for file in (plan_file, *work.glob("heartbeat-*")):
                file.unlink()
            return
        # A negative status is a signal: the kernel kills a process that takes too much memory.
        size = plan["engine"].get("max_num_seqs") or FIRST_BATCH
        batch = max(1, size // 2)
        print(
            f"generate: a process ran out of memory or was killed; trying again with {batch} sequences at a time",
            file=sys.stderr,
        )
    if make_plan()["jobs"]:
        raise UserError(
            f"generation failed {ATTEMPTS} times, the last time with {batch} sequences at a time: lower "
            "--max-model-len, raise --tensor-parallel, or use a device with more memory; finished samples are kept",
            code="out-of-memory",
            batch=batch,
        )
