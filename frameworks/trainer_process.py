"""Launches a native training command: its output goes into a log, progress is one line, trouble is reported early."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from frameworks import collapse
from frameworks.adapter import Command
from system import fork_server, subreaper
from system.errors import UserError

PROGRESS_SECONDS = 5.0
QUIET_SECONDS = 1800.0  # a trainer that prints nothing for this long is considered hung
STEP_SECONDS = 600.0  # and one that makes no step for this long and for STEP_MEDIANS times the median step
STEP_MEDIANS = 20
WATCH_SECONDS = 10.0
LAST_LINES = 25
SHOWN = {"reward_mean": "reward", "response_length_mean": "length"}  # in the progress line

Metrics = Mapping[str, float | None]


class Collapsed(UserError):
    """A training was ended at a grave sign of collapse."""

    def __init__(self, text: str, command: Command, step: int) -> None:
        """Keep the command that was ended and the last step that it reported, from the start of the stage."""
        super().__init__(text)
        self.command, self.step = command, step


def run(
    command: Command,
    *,
    log: Path,
    steps: int,
    name: str,
    metrics: Callable[[str], Metrics | None],
    recorded: Callable[[int], Metrics] = lambda step: {},
    follow: Callable[[int, Metrics], None] = lambda step, row: None,
    resumed_from: int = 0,
    cap: float | None = None,
    stop_on_collapse: bool = False,
) -> None:
    """Run the command to its end.

    Args:
        command: what an adapter prepared.
        log: everything that it prints; appended to, so that a restart keeps the earlier part.
        steps: of the stage, for the time left.
        name: of the run, for the progress line.
        metrics: the metrics of a step from a line of output, as Adapter.progress gives them; may raise UserError.
        recorded: what the recorded rollouts of a step say, as rollout_log.Live.columns gives it.
        follow: takes each step as it ends and all that is known of it.
        resumed_from: step of the checkpoint that the command continues.
        cap: the response limit in tokens, to notice when lengths reach it.
        stop_on_collapse: end the training at a grave sign of collapse, instead of only warning.

    Raises:
        Collapsed: it was ended at a sign of collapse.
        UserError: it ended with another status than 0, printed nothing for half an hour, made no step for much longer
            than steps take, lost a server, reported a failure, or reported a metric that is not a number. The last
            lines of its output are printed before.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file, _servers(command, file) as servers:
        process = _start(command, file)
        ended_by_us: list[str] = []
        collapsed = False

        def end(reason: str) -> None:
            if not ended_by_us:
                ended_by_us.append(reason)
                _end(process)

        def forward(number: int, _: object) -> None:  # so that a scheduler's signal reaches the trainer, not only us
            _end(process)
            raise SystemExit(128 + number)

        previous = {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGINT)}
        recent: deque[str] = deque(maxlen=LAST_LINES)
        progress = _Progress(name, steps, resumed_from)
        trouble = collapse.Watch(cap)
        finished = threading.Event()

        def watch() -> None:
            while not finished.wait(WATCH_SECONDS):
                lost = [server.returncode for server in servers if server.poll() is not None]
                if lost and process.poll() is None:  # a trainer would wait for it, up to its own long limit
                    end(f"lost a server that it needs (status {lost[0]}) and was ended")
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
                    found = metrics(line)
                except UserError as failure:
                    end(str(failure))
                    continue
                if found is None:
                    continue
                broken = [key for key, value in found.items() if value is not None and not math.isfinite(value)]
                if broken:
                    end(f"reported {' and '.join(broken)} that is not a number at step {progress.done + 1}")
                progress.step(found)
                row = {"step": progress.done, **found, **recorded(progress.done)}
                follow(progress.done, row)
                for sign in trouble.add(row):
                    print(f"WARNING: {name}: {sign.kind} at step {sign.step}: {sign.evidence}", flush=True)
                    if stop_on_collapse and sign.grave:
                        collapsed = collapsed or not ended_by_us
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
        text = (
            f"training {name} {reason}; its output is in {log}, and the same command resumes from its last checkpoint"
        )
        raise Collapsed(text, command, progress.done) if collapsed else UserError(text)
    if command.scratch:
        shutil.rmtree(command.scratch, ignore_errors=True)


class _Progress:
    def __init__(self, name: str, steps: int, first: int) -> None:
        self.name, self.steps, self.first, self.done = name, steps, first, first
        self.started, self.shown = time.monotonic(), 0.0
        self.last_output = self.last_step = self.started
        self.durations: list[float] = []

    def heard(self) -> None:
        self.last_output = time.monotonic()

    def hung(self) -> str:
        """Why the trainer seems to hang; empty if it does not."""
        now = time.monotonic()
        if now - self.last_output > QUIET_SECONDS:
            return f"printed nothing for {QUIET_SECONDS / 60:.0f} minutes"
        if self.durations:  # it may print and make no steps, as when an exchange of weights has failed
            start_up, *rest = self.durations  # the first step includes the start-up
            patience = max(STEP_SECONDS, STEP_MEDIANS * statistics.median(rest) if rest else 2 * start_up)
            if now - self.last_step > patience:
                return f"made no step for {patience / 60:.0f} minutes after {self.done} steps"
        return ""

    def step(self, metrics: Metrics) -> None:
        self.done += 1
        now = time.monotonic()
        self.durations.append(now - self.last_step)
        self.last_step = now
        if self.done == self.first + 1:
            self.started = now  # the first step includes the start-up
        if now - self.shown < PROGRESS_SECONDS and self.done < self.steps:
            return
        self.shown = now
        timed = self.done - self.first - 1
        rate = (now - self.started) / timed if timed else float("nan")
        pace = f", {rate:.1f} s per step, {rate * (self.steps - self.done):.0f} s left" if timed else ""
        shown = "".join(f", {word} {metrics[column]:.3g}" for column, word in SHOWN.items() if column in metrics)
        print(f"{self.name}: step {self.done}/{self.steps}{shown}{pace}", flush=True)


def _start(command: Command, log: IO[str]) -> subprocess.Popen[str]:
    log.write(f"$ {shlex.join(command.arguments)}\n")
    log.flush()
    return subprocess.Popen(
        [sys.executable, subreaper.__file__, *fork_server.words(command.arguments)],
        env={**os.environ, **command.environment, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that a signal reaches the trainer's own children, too
    )


def _end(process: subprocess.Popen[str], patience: float = 20.0) -> None:
    """End a process and its children: SIGTERM, then SIGKILL."""
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
    """Run the servers that a trainer needs for as long as it runs; their output goes into the same log."""
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
