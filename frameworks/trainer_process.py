"""Runs a trainer as a process: its output goes into a log, progress is one line, trouble is reported early.

An adapter has rendered the command (`Adapter.prepare`); `train_stage.py` calls `run`. Nothing here knows a framework.
"""

from __future__ import annotations

import errno
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from frameworks import collapse, reward_hook
from frameworks.adapter import Command
from frameworks.training_progress import Metrics, Progress
from system import fork_server, subreaper
from system.errors import UserError

# As Python's and Rust's errors have it, in a trainer's own output.
DISK_IS_FULL = re.compile(rf"(\[Errno|\(os error) ({errno.ENOSPC}|{errno.EDQUOT})[\])]")
# torch.save's words, the same on a full disk and at a limit of file sizes.
NOT_WRITTEN = re.compile(
    r"RuntimeError: (basic_ios::clear: iostream error|\[enforce fail at inline_container.*\] \. unexpected pos )"
)
WATCH_SECONDS = 10.0
FINISHED_SECONDS = 1.0  # between looks whether a trainer that does not end at its last step is there
END_SECONDS = 20.0  # between SIGTERM and SIGKILL
LAST_LINES = 25

COLLAPSED, FAILED = "training-collapsed", "training-failed"  # codes of errors


class Collapsed(UserError):
    """A training was ended at a grave sign of collapse."""

    def __init__(self, reason: str, remedy: str, command: Command, step: int) -> None:
        """Keep the command that was ended and the last step that it reported, from the start of the stage."""
        super().__init__(f"{reason}; {remedy}", code=COLLAPSED, step=step)
        self.reason, self.command, self.step = reason, command, step


@dataclass
class Monitor:
    """Follows the steps of a training while it runs: progress, signs of collapse, and what is not a number."""

    name: str  # of the run, for the progress line
    steps: int  # of the stage, for the time left
    parse_line: Callable[[str], Metrics | None]  # metrics of a step from a line of output: Adapter.columns_in_line
    recorded_columns: Callable[[int], Metrics] = lambda step: {}  # what a step's rollouts say: rollout_log.Live.columns
    on_step: Callable[[int, Metrics], None] = lambda step, row: None  # takes each step and all that is known of it
    is_further_update: Callable[[str], bool] = lambda line: False  # of the newest step: Adapter.is_further_update
    on_update: Callable[[int], None] = lambda step: None  # takes the step that has made a further update
    resumed_from: int = 0  # step of the checkpoint that training continues
    max_response_tokens: float | None = None  # to notice when lengths reach it
    stop_on_collapse: bool = False  # end the training at a grave sign of collapse, instead of only warning

    def __post_init__(self) -> None:
        """Start before the first step."""
        self.progress = Progress(self.name, self.steps, self.resumed_from, WATCH_SECONDS)
        self.signs = collapse.Watch(self.max_response_tokens)

    def read(self, line: str, trainer: _Trainer) -> None:
        """Take a line of output; trouble in it ends the trainer."""
        self.progress.note_output()
        try:
            metrics = self.parse_line(line)
        except UserError as failure:
            trainer.end(failure)
            return
        if self.progress.done > self.resumed_from and self.is_further_update(line):
            self.progress.note_update()
            self.on_update(self.progress.done)
            return
        if metrics is None or self.progress.done >= self.steps:  # until it is ended, a trainer may make more steps
            return
        if broken := [key for key, value in metrics.items() if value is not None and not math.isfinite(value)]:
            step = self.progress.done + 1
            sentence = f"reported {' and '.join(broken)} that is not a number at step {step}"
            trainer.end(UserError(sentence, code="metric-not-a-number", metrics=broken, step=step))
        self.progress.note_step(metrics)
        step = self.progress.done
        row = {"step": step, **metrics, **self.recorded_columns(step)}
        self.on_step(step, row)
        for sign in self.signs.add(row):
            print(f"WARNING: {self.name}: {sign.kind} at step {sign.step}: {sign.evidence}", flush=True)
            if self.stop_on_collapse and sign.grave:
                sentence = f"is collapsing ({sign.kind} at step {sign.step}: {sign.evidence}) and was ended"
                trainer.end(UserError(sentence, code=COLLAPSED, kind=sign.kind, step=sign.step))


def run(command: Command, log: Path, monitor: Monitor) -> None:
    """Run the command to its end.

    Args:
        command: what an adapter prepared.
        log: everything that it prints; appended to, so that a restart keeps the earlier part.
        monitor: follows the output.

    Raises:
        Collapsed: it was ended at a sign of collapse.
        UserError: it ended with another status than 0, printed nothing for half an hour, made no step for much longer
            than steps take, lost a server, reported a failure, or reported a metric that is not a number. The last
            lines of its output are printed before, unless the disk was full.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    recent: deque[str] = deque(maxlen=LAST_LINES)
    with log.open("a", encoding="utf-8") as file, _servers(command, file) as servers:
        trainer = _Trainer(_start(command, file), command.environment)
        with trainer.ended_on_exit(), trainer.watched(servers, monitor.progress, command.finished):
            for line in trainer.output():
                file.write(line)
                file.flush()
                recent.append(line)
                monitor.read(line, trainer)
            status = trainer.process.wait()
        noted = reward_hook.noted_failure(command.environment)
        if noted and noted["trace"] not in "".join(recent):
            file.write(noted["trace"])
            recent.append(noted["trace"])
    reason = trainer.reason(status)
    if reason is not None and reason.code == FAILED:
        if any(map(DISK_IS_FULL.search, recent)):
            reason = _disk_full()
        elif any(map(NOT_WRITTEN.search, recent)):
            sentence = (
                "could not write a checkpoint: the disk may be full, or the limit of file sizes (ulimit -f) reached"
            )
            reason = UserError(sentence, code="checkpoint-not-written")
    if reason is not None:
        if reason.code != "disk-full":
            sys.stderr.write("".join(recent))
        sentence = f"training {monitor.name} {reason}"
        remedy = f"its output is in {log}, and the same command resumes from its last checkpoint"
        if reason.code == COLLAPSED:
            raise Collapsed(sentence, remedy, command, monitor.progress.done)
        raise UserError(f"{sentence}; {remedy}", code=reason.code, **reason.facts)
    if command.scratch:
        shutil.rmtree(command.scratch, ignore_errors=True)


def run_unwatched(command: Command, log: Path) -> float:
    """Run the command to its end with nothing but its servers beside it; returns its seconds.

    Args:
        command: what an adapter prepared; each of its processes is an interpreter of its own.
        log: everything that it prints.

    Raises:
        UserError: it ended with another status than 0, or a reward function failed.
    """
    started = time.monotonic()
    with log.open("w", encoding="utf-8") as file, _servers(command, file):
        trainer = _Trainer(_start(command, file, stdout=file), command.environment)
        with trainer.ended_on_exit():
            while command.finished and trainer.process.poll() is None and not trainer.finished:
                time.sleep(FINISHED_SECONDS)
                trainer.finished = command.finished()
            status = 0 if trainer.finished else trainer.process.wait()
    seconds = time.monotonic() - started
    if reason := trainer.reason(status):
        sentence = f"the framework's own command {reason}; its output is in {log}"
        raise UserError(sentence, code=reason.code, **reason.facts)
    if command.scratch:
        shutil.rmtree(command.scratch, ignore_errors=True)
    return seconds


class _Trainer:
    """The trainer's process, and why it was ended from here, if it was."""

    def __init__(self, process: subprocess.Popen[str], environment: Mapping[str, str]) -> None:
        self.process, self.environment = process, environment
        self.failure: UserError | None = None  # its sentence follows `training <name>`
        self.finished = False  # it was ended because all that is wanted of it was written

    def output(self) -> Iterator[str]:
        assert self.process.stdout is not None
        yield from self.process.stdout

    def end(self, failure: UserError) -> None:
        """End the process; of several reasons the first counts, and a reward's failure before what came of it."""
        if self.failure is None:
            self.failure = self.failed_reward() or failure
            _end(self.process)

    def failed_reward(self) -> UserError | None:
        """The failure that a reward function has had so far."""
        noted = reward_hook.noted_failure(self.environment)
        if noted is None:
            return None
        if DISK_IS_FULL.search(noted["reason"]):
            return _disk_full()
        sentence = f"stopped: a reward function failed: {noted['reason']}"
        return UserError(sentence, code="reward-failed", reason=noted["reason"])

    def reason(self, status: int) -> UserError | None:
        """Why a process that ended with this status failed; None if it did not."""
        if self.failure or self.finished:
            return self.failure
        failure = UserError(f"ended with status {status}", code=FAILED, status=status) if status else None
        return self.failed_reward() or failure

    @contextmanager
    def ended_on_exit(self) -> Iterator[None]:
        """The process does not outlive the block; a scheduler's signal reaches the trainer, not only this program."""

        def forward(number: int, _: object) -> None:
            _end(self.process)
            raise SystemExit(128 + number)

        def end_at_signal() -> None:
            """Ends what the main thread may wait for: a signal just before it blocks does not wake it."""
            with os.fdopen(reading, "rb", buffering=0) as signals:
                while number := signals.read(1):
                    if number[0] in previous:
                        _end(self.process)

        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        previous = {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGINT)}
        woken_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=end_at_signal, daemon=True).start()
        try:
            yield
        finally:
            _end(self.process)
            signal.set_wakeup_fd(woken_before)
            os.close(writing)
            for number, handler in previous.items():
                signal.signal(number, handler)

    @contextmanager
    def watched(
        self,
        servers: Sequence[subprocess.Popen[str]],
        progress: Progress,
        has_finished: Callable[[], bool] | None = None,
    ) -> Iterator[None]:
        """While the block runs, end a trainer that has finished, that hangs, or that has lost a server."""
        finished = threading.Event()

        def watch() -> None:
            while not finished.wait(FINISHED_SECONDS if has_finished else WATCH_SECONDS):
                if has_finished and progress.done >= progress.steps and has_finished():
                    self.finished = True
                    _end(self.process)
                    return
                lost = [server.returncode for server in servers if server.poll() is not None]
                if lost and self.process.poll() is None:  # a trainer would wait for it, up to its own long limit
                    sentence = f"lost a server that it needs (status {lost[0]}) and was ended"
                    self.end(UserError(sentence, code="server-lost", status=lost[0]))
                if failure := self.failed_reward():
                    self.end(failure)
                if reason := progress.reason_if_hung():
                    self.end(UserError(f"{reason} and was ended", code="training-hung", step=progress.done))

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            finished.set()


def _start(command: Command, log: IO[str], stdout: IO[str] | int = subprocess.PIPE) -> subprocess.Popen[str]:
    log.write(f"$ {shlex.join(command.arguments)}\n")
    log.flush()
    return subprocess.Popen(
        [sys.executable, subreaper.__file__, *fork_server.forked_command(command.arguments)],
        env={**os.environ, **command.environment, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that a signal reaches the trainer's own children, too
    )


def _disk_full() -> UserError:
    return UserError("found the disk full: free some space", code="disk-full")


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and its children: SIGTERM, then SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(END_SECONDS)
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
            threading.Thread(target=_copy_to_log, args=(running[-1], log), daemon=True).start()
        yield running
    finally:
        for process in running:
            _end(process)


def _copy_to_log(process: subprocess.Popen[str], log: IO[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        log.write(f"[server] {line}")
