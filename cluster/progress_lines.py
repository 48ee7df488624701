"""Where output is no terminal: a plain line for each job that starts or ends, with what is done and the time left.

They replace Snakemake's descriptions and numbers of jobs, which are in its log file; its other messages stay.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from cluster.progress import Progress, duration_text, job_label
from cluster.snakemake_internals import ColorizingTextHandler, LogEvent, Quietness, attached_handler, logger

REPLACED = (LogEvent.JOB_INFO, LogEvent.JOB_STARTED, LogEvent.JOB_FINISHED, LogEvent.PROGRESS)
SELECTION = "Select jobs to execute..."  # a message without an event


class ProgressLines(logging.Handler):
    """Prints its lines from the first job on, if there are several.

    Args:
        handler: Snakemake's, of its standard error; warnings, errors and these lines go through it.
        rules: see Progress.
        cluster: whether jobs are submitted to a cluster, but for local rules.
    """

    def __init__(self, handler: ColorizingTextHandler, rules: Callable[[], Mapping[str, bool]], cluster: bool) -> None:
        """Begin when the first job starts."""
        super().__init__()
        self.handler, self.cluster, self.progress, self.begun = handler, cluster, Progress(rules), False
        handler.addFilter(self.is_printed)

    def is_printed(self, record: logging.LogRecord) -> bool:
        """Whether Snakemake's handler prints a message."""
        replaced = getattr(record, "event", None) in REPLACED or record.getMessage() == SELECTION
        return not (self.begun and replaced)

    def emit(self, record: logging.LogRecord) -> None:
        """Take an event of Snakemake."""
        event, now = record.__dict__, time.monotonic()
        ended, kind = self.progress.add(event, now), event.get("event")
        if kind == LogEvent.JOB_STARTED:
            self.begun = self.begun or self.progress.is_shown
        if not self.begun:
            return
        if kind == LogEvent.JOB_INFO:
            self.say(f"{job_label(event)}: {'submitted' if self.cluster and not event['local'] else 'started'}")
        elif ended:
            self.say(f"{job_label(ended.job)}: done after {duration_text(ended.seconds)}; {self.progress.summary(now)}")
            for run, text in ended.accuracies.items():
                self.say(f"held-out accuracy of {run}: {text}")

    def say(self, text: str) -> None:
        """Print a line, unless Snakemake is asked to say nothing of progress."""
        line = f"{time.strftime('%H:%M:%S')} {text}"
        record = logging.LogRecord(__name__, logging.INFO, "", 0, line, None, None)
        record.quietness = Quietness.PROGRESS
        self.handler.handle(record)


def show(rules: Callable[[], Mapping[str, bool]] = dict, cluster: bool = False) -> ProgressLines | None:
    """Print lines on Snakemake's standard error; None if it has none. See ProgressLines."""
    known, handler = attached_handler(ProgressLines), attached_handler(ColorizingTextHandler)
    if known or not handler:  # Snakemake reads the Snakefile more than once
        return known
    lines = ProgressLines(handler, rules, cluster)
    logger.addHandler(lines)
    return lines
