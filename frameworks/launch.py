"""Launching a native training command: its output into a log, progress in one line, and trouble seen as it starts."""

from __future__ import annotations

import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from contracts import subreaper
from contracts.errors import UserError
from frameworks import collapse
from frameworks.adapter import Command

PROGRESS_SECONDS = 5.0
QUIET_SECONDS = 1800.0  # without a line of output, the trainer is taken for hung
STEP_SECONDS = 600.0  # without a further step for this long, and for STEP_MEDIANS times the median step, too
STEP_MEDIANS = 20
WATCH_SECONDS = 10.0
LAST_LINES = 25
LOGGED_AS = {
    "length": "response_length_mean", "truncated": "truncated_rate", "kl": "kl", "entropy": "entropy",
    "zero_signal": "zero_signal_rate", "accuracy": "accuracy", "format_error": "format_error_rate",
}  # fmt: skip


def run(
    command: Command, *, log: Path, steps: int, name: str, cap: float | None = None, stop_on_collapse: bool = False
) -> None:
    """Run the command to its end.

    Args:
        command: what an adapter prepared.
        log: everything that it prints; appended to, so that a restart keeps the earlier part.
        steps: policy updates of the stage, for the time left.
        name: of the run, for the progress line.
        cap: the response limit in tokens, to see length run to it.
        stop_on_collapse: end the training at a grave sign of collapse, instead of warning of it alone.

    Raises:
        UserError: it ended with another status than 0, printed nothing for half an hour, made no step for much longer
            than steps take, lost a server, told of a failure, or reported a loss or reward that is not a number. The
            last lines of its output are printed before.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file, _servers(command, file) as servers:
        process = _start(command, file)
        ended_by_us: list[str] = []

        def end(reason: str) -> None:
            if not ended_by_us:
                ended_by_us.append(reason)
                _end(process)

        def forward(number: int, _: object) -> None:  # so that a scheduler's signal reaches the trainer, not only us
            _end(process)
            raise SystemExit(128 + number)

        previous = {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGINT)}
        recent: deque[str] = deque(maxlen=LAST_LINES)
        progress = _Progress(name, steps, command.resumed_from)
        trouble = collapse.Watch(cap)
        finished = threading.Event()

        def watch() -> None:
            while not finished.wait(WATCH_SECONDS):
                lost = [server.returncode for server in servers if server.poll() is not None]
                if lost and process.poll() is None:  # a trainer would wait for it, up to its own long limit
                    end(f"lost a server that it needs, which ended with status {lost[0]},")
                if hung := progress.hung():
                    end(f"{hung} and was ended")

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                progress.heard()
                file.write(line)
                file.flush()
                recent.append(line)
                try:
                    metrics = command.progress(line)
                except UserError as failure:
                    end(str(failure))
                    continue
                if metrics is None:
                    continue
                broken = [key for key, value in metrics.items() if not math.isfinite(value)]
                if broken:
                    end(f"reported {' and '.join(broken)} that is not a number at {progress.at()}")
                progress.step(metrics)
                for sign in trouble.add({"step": progress.done, **_as_logged(metrics)}):
                    print(f"WARNING: {name}: {sign.kind} at step {sign.step}: {sign.evidence}", flush=True)
                    if stop_on_collapse and sign.grave:
                        end(f"is collapsing ({sign.kind} at step {sign.step}: {sign.evidence}) and was ended")
            status = process.wait()
        finally:
            finished.set()
            _end(process)
            for number, handler in previous.items():
                signal.signal(number, handler)
    if ended_by_us or status != 0:
        sys.stderr.write("".join(recent))
        reason = ended_by_us[0] if ended_by_us else f"ended with status {status}"
        raise UserError(
            f"training {name} {reason}; its output is in {log}, and the same command goes on from its last checkpoint"
        )
    if command.scratch:
        shutil.rmtree(command.scratch, ignore_errors=True)


def _as_logged(metrics: dict[str, float]) -> dict[str, float]:
    """A step's metrics under the names of the training log's columns."""
    return {LOGGED_AS[name]: value for name, value in metrics.items() if name in LOGGED_AS}


class _Progress:
    def __init__(self, name: str, steps: int, first: int) -> None:
        self.name, self.steps, self.first, self.done = name, steps, first, first
        self.started, self.shown = time.monotonic(), 0.0
        self.last_output = self.last_step = self.started
        self.durations: list[float] = []

    def at(self) -> str:
        return f"step {self.done + 1}"

    def heard(self) -> None:
        self.last_output = time.monotonic()

    def hung(self) -> str:
        """What says that the trainer is hung, if anything does."""
        now = time.monotonic()
        if now - self.last_output > QUIET_SECONDS:
            return f"printed nothing for {QUIET_SECONDS / 60:.0f} minutes"
        if self.durations:  # it prints, or waits, but makes no steps: so does a failed exchange of weights
            start_up, *rest = self.durations  # the first step carries the start-up
            patience = max(STEP_SECONDS, STEP_MEDIANS * statistics.median(rest) if rest else 2 * start_up)
            if now - self.last_step > patience:
                return f"made no step for {patience / 60:.0f} minutes after {self.done} steps"
        return ""

    def step(self, metrics: dict[str, float]) -> None:
        self.done += 1
        now = time.monotonic()
        self.durations.append(now - self.last_step)
        self.last_step = now
        if self.done == self.first + 1:
            self.started = now  # the first step carries the start-up
        if now - self.shown < PROGRESS_SECONDS and self.done < self.steps:
            return
        self.shown = now
        timed = self.done - self.first - 1
        rate = (now - self.started) / timed if timed else float("nan")
        pace = f", {rate:.1f} s per step, {rate * (self.steps - self.done):.0f} s left" if timed else ""
        shown = ", ".join(f"{key} {value:.3g}" for key, value in metrics.items() if key in ("reward", "length"))
        print(f"{self.name}: step {self.done}/{self.steps}, {shown}{pace}", flush=True)


def _start(command: Command, log: IO[str]) -> subprocess.Popen[str]:
    log.write(f"$ {' '.join(command.arguments)}\n")
    log.flush()
    return subprocess.Popen(
        [sys.executable, subreaper.__file__, *command.arguments],
        env={**os.environ, **command.environment, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that a signal reaches the trainer's own children, too
    )


def _end(process: subprocess.Popen[str], patience: float = 20.0) -> None:
    """End a process and its children: politely, then not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


@contextmanager
def _servers(command: Command, log: IO[str]) -> Iterator[list[subprocess.Popen[str]]]:
    """The servers that a trainer talks to, for as long as it runs; their output goes into the same log."""
    running: list[subprocess.Popen[str]] = []
    try:
        for server in command.servers:
            running.append(_start(server, log))
            threading.Thread(target=_copy, args=(running[-1], log), daemon=True).start()
        yield running
    finally:
        for process in running:
            _end(process)


def _copy(process: subprocess.Popen[str], log: IO[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        log.write(f"[server] {line}")
