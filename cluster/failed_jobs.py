"""What a terminal shows of failed jobs: the end of their log, once, also where rules are quiet, and how to resume.

Snakemake itself shows the whole log, and none where rules are quiet. Its own log file keeps all that it says.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cluster.snakemake_internals import ColorizingTextHandler, LogEvent, attached_handler
from system.text_safety import visible

MAX_LINES, MAX_BYTES = 25, 100_000
READ, SHOWN = 200, 10  # lines of a failed job's log
PROGRESS = re.compile(r"\d+%\|.*\||\[[\d:]+<[\d:?]+")  # tqdm
PREFIX = re.compile(r"^(\S\[\d+m)?\([\w.:]+ pid=\d+[^)]*\)(\S\[0m)? ?")  # Ray's, before a line of an actor
# How `system.errors` begins the sentence that ends a command; what is before it need not be shown.
SENTENCES = ("Error: ", "Stopped: ", "envs/build.py: ")
ENDING = "At least one job did not complete successfully"
# Rules that fail where their result is bad, which nothing would resume.
VERDICTS = ("compare_checkpoints", "compare_recipes")
COMMAND = "CROSSZERO_COMMAND"  # what the user called, where that is not Snakemake


def last_lines(log: Path, most: int = MAX_LINES) -> list[str]:
    """The last lines of a log: from the sentence that ended the command, if there is one in them."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - MAX_BYTES))
            content = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    written = (line.rpartition("\r")[2] for line in content.rstrip("\r\n ").replace("\r\n", "\n").split("\n"))
    lines = [visible(line) for line in written][-most:]
    starts = [number for number, line in enumerate(lines) if line.startswith(SENTENCES)]
    return lines[starts[-1] :] if starts else lines


def relevant_lines(lines: Sequence[str]) -> list[str]:
    """At most SHOWN of the last lines: without empty ones, progress bars and the frames of Python tracebacks."""
    kept: list[str] = []
    in_traceback = False
    for line in lines:
        text = PREFIX.sub("", line)
        in_traceback = text.startswith("Traceback (") or (in_traceback and text.startswith(" "))
        if text.strip() and not in_traceback and not PROGRESS.search(text) and line not in kept[-1:]:
            kept.append(line)
    return kept[-SHOWN:]


class FailedJobs(logging.Filter):
    """Shows failed jobs on one handler in place of Snakemake's own messages.

    Args:
        handler: Snakemake's, of the terminal.
        on_terminal: whether a job of this rule and shell command has printed on this terminal what its log has.
        interrupted: whether the user has ended the workflow; a job that ends then has not failed.
    """

    def __init__(
        self, handler: logging.Handler, on_terminal: Callable[[str, str], bool], interrupted: Callable[[], bool]
    ) -> None:
        """Watch a handler."""
        super().__init__()
        self.handler, self.on_terminal, self.interrupted = handler, on_terminal, interrupted
        self.rules: set[str] = set()  # of the jobs that failed

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether Snakemake's message is shown; a failed job is shown here."""
        event, message = getattr(record, "event", None), record.getMessage()
        if record.levelno < logging.ERROR and event != LogEvent.JOB_ERROR:
            return True
        if self.interrupted():
            return False
        if event == LogEvent.JOB_ERROR:
            text = self.described(record.__dict__)
            self.handler.handle(logging.LogRecord(record.name, record.levelno, "", 0, text, None, None))
            return False
        # The command and its exit status, and Python's traceback of them: the rule fails right after it. At the end,
        # that a job failed, which has been shown.
        return not (event == LogEvent.ERROR and ("CalledProcessError" in message or (self.rules and ENDING in message)))

    def described(self, failed: Mapping[str, Any]) -> str:
        """One failed job: its rule, what it makes, what the executor says, and the end of its logs."""
        rule, logs = failed["rule_name"], [Path(log) for log in failed["log"]]
        self.rules.add(rule)
        result = [line for log in logs for line in last_lines(log)] if rule in VERDICTS else []
        if result and not result[0].startswith(SENTENCES):
            return visible(f"This verdict ends the command as a failure. The comparison: {result[-1]}")
        parts = [f"{rule} failed{', which makes ' + failed['output'][0] if failed['output'] else ''}"]
        parts += [failed["rule_msg"]] if failed["rule_msg"] else []
        if logs and self.on_terminal(rule, failed["shellcmd"] or ""):
            return visible("; ".join([*parts, f"its output is above and in {logs[0]}"]))
        ends = {log: lines for log in logs if (lines := relevant_lines(last_lines(log, READ)))}
        # A sentence says it all; without one, Slurm's own log may say what the command's does not.
        said = [log for log, lines in ends.items() if lines[0].startswith(SENTENCES)][:1] or list(ends)
        parts += [f"the end of {log}:" + "".join(f"\n    {line}" for line in ends[log]) for log in said]
        return visible("; ".join(parts if said else [*parts, "it printed nothing"]))


def show(on_terminal: Callable[[str, str], bool], interrupted: Callable[[], bool] = lambda: False) -> FailedJobs | None:
    """Show failed jobs on Snakemake's terminal; None if it has none. See FailedJobs."""
    if not (handler := attached_handler(ColorizingTextHandler)):
        return None
    for known in handler.filters:  # Snakemake reads the Snakefile more than once
        if isinstance(known, FailedJobs):
            return known
    failed_jobs = FailedJobs(handler, on_terminal, interrupted)
    handler.filters.insert(0, failed_jobs)  # before the filter that drops failed jobs where rules are quiet
    return failed_jobs


def how_to_resume() -> str:
    """The command that continues what failed."""
    return os.environ.get(COMMAND) or shlex.join(["snakemake", *sys.argv[1:]])
