"""One live view in a terminal, from Snakemake's events and the jobs' logs: stages, running jobs, time left, warnings.

Snakemake's own messages are in its log file. Without a terminal nothing changes: jobs and Snakemake print plain lines.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.table import Table
from rich.text import Text
from snakemake.logging import ColorizingTextHandler, logger
from snakemake_interface_logger_plugins.common import LogEvent

from cluster.failed_jobs import last_lines
from contracts.paths import RunFolder
from contracts.text_safety import one_line
from eval import accuracy_so_far

# Of a training, of a base model, of an evaluation: `openr1/…: step 7/20, …, reward 0.25, …, 26 s left`,
# `demo model: step 100/900, …, 177 s left`, `generate: 200/1800 samples, …, 1:04 left`.
STEP = re.compile(
    r"(?:\S+|demo model): (?:step )?(\d+)/(\d+)\b(?:.*?, reward ([-\d.e+]+))?(?:.*?, ([\d:]+)(?: s)? left)?"
)
WARNING = "WARNING: "
MAX_WARNINGS = 5  # shown, the newest; also of accuracies
GRADED = RunFolder(Path()).graded.name
PER_SECOND = 2


def duration(seconds: float) -> str:
    """A time for readers, such as 40 s, 12 min or 3 h 05 min."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def seconds(clock: str) -> float:
    """Seconds of a time such as 64, 1:04 or 1:00:04."""
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + float(part or 0)
    return total


class Progress:
    """What is done, what runs and what is left, fed with Snakemake's events (the attributes of its log records)."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self.total: dict[str, int] = {}  # jobs by rule, in the order of the workflow
        self.done: Counter[str] = Counter()
        self.known: dict[int, Mapping[str, Any]] = {}
        self.running: dict[int, float] = {}  # and when they started
        self.seconds: dict[str, list[float]] = defaultdict(list)  # of finished jobs, by rule
        self.warnings: dict[str, None] = {}  # in order
        self.heldout: dict[str, str] = {}  # accuracy so far, by run

    def add(self, event: Mapping[str, Any], now: float) -> None:
        """Take one event; `now` is in seconds."""
        kind = event.get("event")
        if kind == LogEvent.RUN_INFO:
            self.total = {rule: count for rule, count in event["stats"].items() if rule != "total"}
        elif kind == LogEvent.JOB_INFO:
            self.known[event["jobid"]] = event
            self.running[event["jobid"]] = now
        elif kind == LogEvent.JOB_FINISHED and (started := self.running.pop(event["job_id"], None)) is not None:
            rule = self.known[event["job_id"]]["rule_name"]
            self.done[rule] += 1
            self.seconds[rule].append(now - started)
            self._read_accuracy(self.known[event["job_id"]])
        elif kind == LogEvent.JOB_ERROR:
            self.running.pop(event["jobid"], None)

    def _read_accuracy(self, job: Mapping[str, Any]) -> None:
        """Keep the accuracy of a run whose samples have been graded."""
        for output in map(Path, job.get("output") or ()):
            if output.name == GRADED and (found := accuracy_so_far.text(accuracy_so_far.read(output))):
                self.heldout["/".join(output.parts[-4:-1])] = found

    def left(self, now: float) -> float | None:
        """Seconds left of the whole, guessed from finished jobs of the same rule and from the logs of trainings."""
        every = [seconds for of_rule in self.seconds.values() for seconds in of_rule]
        if not every:
            return None
        usual = {rule: sum(own) / len(own) if (own := self.seconds.get(rule)) else sum(every) / len(every)
                 for rule in self.total}  # fmt: skip
        waiting = sum(usual[rule] * count for rule, count in self.total.items()) - sum(
            usual.get(rule, 0) * count for rule, count in self.done.items()
        )
        for job, started in self.running.items():
            mean = usual.get(self.known[job]["rule_name"], 0)
            told = self.step(job)[2]
            waiting += (told if told is not None else max(mean - (now - started), 0)) - mean
        return max(waiting, 0) / max(len(self.running), 1)

    def step(self, job: int) -> tuple[str, str, float | None]:
        """The newest step, reward and seconds left of a running job from its log; warnings are kept."""
        found: tuple[str, str, float | None] = ("", "", None)
        for log in self.known[job]["log"]:
            for line in last_lines(Path(log)):
                if line.startswith(WARNING):
                    self.warnings[one_line(line.removeprefix(WARNING))] = None
                elif match := STEP.match(line):
                    step, of, reward, left = match.groups()
                    found = (f"{step}/{of}", reward or "", seconds(left) if left else None)
        return found

    def drawn(self, now: float) -> Group:
        """The view: a line of stages, running jobs, warnings."""
        stages = [f"{rule} {self.done[rule]}/{count}" for rule, count in self.total.items()]
        count, left = sum(self.done.values()), self.left(now)
        words = f"{count} of {sum(self.total.values())} jobs" + (f", about {duration(left)} left" if left else "")
        jobs = Table(box=None, pad_edge=False, show_edge=False)
        for name in ("running", "of", "step", "reward", "since", "left"):
            jobs.add_column(name, no_wrap=name != "of")
        for job, started in list(self.running.items()):
            event, (step, reward, left_of_job) = self.known[job], self.step(job)
            of = one_line(" ".join(map(str, (event["wildcards"] or {}).values())))
            ends = duration(left_of_job) if left_of_job is not None else ""
            jobs.add_row(*map(Text, (event["rule_name"], of, step, reward, duration(now - started), ends)))
        warnings = [Text(f"warning: {text}", style="yellow") for text in [*self.warnings][-MAX_WARNINGS:]]
        accuracy = [
            Text(f"held-out accuracy of {run}: {text}") for run, text in [*self.heldout.items()][-MAX_WARNINGS:]
        ]
        return Group(Text(" → ".join(stages), style="dim"), Text(words, style="bold"), jobs, *accuracy, *warnings)


class LiveView(logging.Handler):
    """Draws the progress on standard error, and prints what jobs write to standard output above it.

    Args:
        handler: Snakemake's, of the terminal; warnings and errors go on through it.
    """

    def __init__(self, handler: ColorizingTextHandler) -> None:
        """Begin to draw when the first job starts."""
        super().__init__()
        self.terminal, self.progress = handler, Progress()
        self.live: Live | None = None
        handler.addFilter(lambda record: self.live is None or record.levelno >= logging.WARNING)

    def __rich__(self) -> Group:
        """What is drawn, several times a second."""
        return self.progress.drawn(time.monotonic())

    def emit(self, record: logging.LogRecord) -> None:
        """Take an event of Snakemake."""
        self.progress.add(record.__dict__, time.monotonic())
        several = sum(self.progress.total.values()) > 1  # one alone, such as `help`, prints what it is asked for
        if several and self.live is None and getattr(record, "event", None) == LogEvent.JOB_STARTED:
            self.start()

    def start(self) -> None:
        """Take over the terminal."""
        stream = self.terminal.stream
        console = Console(file=stream)
        self.live = Live(self, console=console, refresh_per_second=PER_SECOND, redirect_stdout=False)
        self.output = os.dup(1)
        reading, writing = os.pipe()
        os.dup2(writing, 1)
        os.close(writing)
        self.reader = threading.Thread(target=self._read, args=(reading, console), daemon=True)
        self.terminal.setStream(FileProxy(console, stream))
        self.reader.start()
        self.live.start()
        atexit.register(self.stop, stream)

    def _read(self, reading: int, console: Console) -> None:
        """Print lines of jobs, but not the steps, which are drawn, nor warnings, which are listed."""
        with os.fdopen(reading, errors="replace") as lines:
            for line in lines:
                if not STEP.match(line) and not line.startswith(WARNING):
                    console.print(Text(one_line(line.rstrip("\n"))), soft_wrap=True)

    def stop(self, stream: Any) -> None:
        """Give the terminal back."""
        sys.stdout.flush()
        os.dup2(self.output, 1)
        self.reader.join(timeout=1)
        assert self.live
        self.live.stop()
        self.terminal.setStream(stream)


def show() -> LiveView | None:
    """Draw a live view if standard output and Snakemake's terminal are terminals; None if not."""
    if not sys.stdout.isatty():
        return None
    for known in logger.handlers:  # Snakemake reads the Snakefile more than once
        if isinstance(known, LiveView):
            return known
    for handler in logger.handlers:
        if isinstance(handler, ColorizingTextHandler) and handler.stream.isatty():
            view = LiveView(handler)
            logger.addHandler(view)
            return view
    return None
