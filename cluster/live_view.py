"""One live view in a terminal: stages, running jobs with step and reward, time left of the whole, warnings.

Snakemake's own messages are in its log file. Without a terminal, see cluster.progress_lines.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping

from rich.console import Console, Group
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cluster.progress import STEP, WARNING, Progress, duration_text, job_label
from cluster.snakemake_internals import ColorizingTextHandler, LogEvent, attached_handler, logger
from system.text_safety import one_line

MOST = 5  # warnings and accuracies shown, the newest
PER_SECOND = 2
BAR = 30  # characters
LOG_FILE = "Complete log(s): "  # where Snakemake's own messages are


def stages_line(progress: Progress) -> Text:
    """The stages in a line, those that run in bold."""
    running = {progress.known[job]["rule_name"] for job in list(progress.running)}
    line = Text()
    for rule, count in progress.total.items():
        done = progress.done[rule]
        style = "bold" if rule in running else "green" if done == count else "dim"
        line.append(" → " if line else "", style="dim").append(f"{rule} {done}/{count}", style=style)
    return line


def layout(progress: Progress, now: float) -> Group:
    """The view: a line of stages, how much is done, running jobs, accuracies, warnings."""
    whole = Table.grid(padding=(0, 1))
    bar = ProgressBar(progress.total.total(), progress.done.total(), width=BAR)
    whole.add_row(bar, Text(progress.summary(now), style="bold"))
    jobs = Table(box=None, pad_edge=False, show_edge=False, show_header=bool(progress.running))
    for name in ("running", "step", "reward", "since", "left"):
        jobs.add_column(name, no_wrap=name != "running")
    for job, started in list(progress.running.items()):
        step, reward, left = progress.step(job)
        ends = duration_text(left) if left is not None else ""
        jobs.add_row(*map(Text, (job_label(progress.known[job]), step, reward, duration_text(now - started), ends)))
    accuracies = [Text(f"held-out accuracy of {run}: {text}") for run, text in [*progress.heldout.items()][-MOST:]]
    warnings = [Text(f"warning: {text}", style="yellow") for text in [*progress.warnings][-MOST:]]
    return Group(stages_line(progress), whole, jobs, *accuracies, *warnings)


class LiveView(logging.Handler):
    """Draws the progress on standard error, and prints what jobs write to standard output above it.

    Args:
        handler: Snakemake's, of the terminal; warnings and errors go on through it.
        rules: see Progress.
    """

    def __init__(self, handler: ColorizingTextHandler, rules: Callable[[], Mapping[str, bool]]) -> None:
        """Begin to draw when the first job starts."""
        super().__init__()
        self.terminal, self.progress = handler, Progress(rules)
        self.live: Live | None = None
        handler.addFilter(self.is_printed)

    def is_printed(self, record: logging.LogRecord) -> bool:
        """Whether Snakemake's handler prints a message beside the view."""
        return self.live is None or record.levelno >= logging.WARNING or record.getMessage().startswith(LOG_FILE)

    def __rich__(self) -> Group:
        """What is drawn, several times a second."""
        return layout(self.progress, time.monotonic())

    def emit(self, record: logging.LogRecord) -> None:
        """Take an event of Snakemake."""
        self.progress.add(record.__dict__, time.monotonic())
        started = getattr(record, "event", None) == LogEvent.JOB_STARTED
        if started and self.progress.is_shown and self.live is None:
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
        atexit.register(self.stop)

    def _read(self, reading: int, console: Console) -> None:
        """Print lines of jobs, but not the steps, which are drawn, nor warnings, which are listed."""
        with os.fdopen(reading, errors="replace") as lines:
            for line in lines:
                if not STEP.match(line) and not line.startswith(WARNING):
                    console.print(Text(one_line(line.rstrip("\n"))), soft_wrap=True)

    def stop(self) -> None:
        """Give the terminal back; a second time it does nothing."""
        if not self.live or not self.live.is_started:
            return
        sys.stdout.flush()
        os.dup2(self.output, 1)
        self.reader.join(timeout=1)
        self.live.stop()
        self.terminal.setStream(self.live.console.file)


def show(rules: Callable[[], Mapping[str, bool]] = dict) -> LiveView | None:
    """Draw a live view if standard output and Snakemake's terminal are terminals; None if not.

    Args:
        rules: see Progress.
    """
    known, handler = attached_handler(LiveView), attached_handler(ColorizingTextHandler)
    if known or not (handler and handler.stream.isatty() and sys.stdout.isatty()):
        return known  # Snakemake reads the Snakefile more than once
    view = LiveView(handler, rules)
    logger.addHandler(view)
    return view
