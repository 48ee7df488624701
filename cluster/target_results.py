"""What a command ends with: the results of its targets and where they are, also when nothing was to be done.

A target with a command has its text or log shown; one that only depends on files has what these say: scores, pages.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cluster.failed_jobs import MAX_BYTES
from cluster.snakemake_internals import NOTHING_TO_BE_DONE_MSG, attached_handler, logger
from contracts import ended_training, paths, tables
from contracts.paths import RunFolder
from eval import accuracy_so_far, score_table
from eval.contamination import MEASURES
from system.errors import UserError
from system.text_safety import visible

MOST_LINES = 40  # of scores
RUN = RunFolder(Path())
UNDECIDED = ("no_answer", "truncated", "format_error", "ungradable")
CONTAMINATION = "contamination.csv"


class TargetJob(Protocol):
    """What is used of Snakemake's job of a target."""

    rule: Any
    input: Sequence[str]
    output: Sequence[str]
    log: Sequence[str]


def run_label(folder: Path) -> str:
    """The run whose results are in a folder, with the grader if it is not the protocol's."""
    if folder.parent.name == "limited":
        return f"{run_label(folder.parent.parent)}, {folder.name}"
    if folder.parent.name == "regraded":
        return f"{run_label(folder.parent.parent)}, graded by {folder.name}"
    return "/".join(folder.parts[-3:] if folder.name.startswith("seed-") else folder.parts[-2:])


def score_text(rows: Sequence[Mapping[str, Any]], prompt: str = "") -> str:
    """The last score of a run on a benchmark, with the first one before it.

    Args:
        rows: SCORE rows, ordered by step.
        prompt: by which the last was asked for; empty if that is unknown.
    """
    first, last = rows[0], rows[-1]
    interval = f"[{100 * last['ci_low']:.1f}, {100 * last['ci_high']:.1f}]"
    text = f"{100 * last['avg_at_k']:.1f} % {interval}" + (f" at step {last['step']}" if last["step"] else "")
    part = f" ({last['subset']})" if last["subset"] else ""
    before = f"{100 * first['avg_at_k']:.1f} → " if len(rows) > 1 else ""
    return f"{before}{text}, {last['n_problems']} problems{part} × {last['k_repeats']}, protocol {last['protocol']}" + (
        f", prompt {prompt}" if prompt else ""
    )


def score_cells(file: Path) -> list[tuple[str, str, str]]:
    """Run, benchmark and score of a score table, a row per benchmark."""
    label, rows = run_label(file.parent), tables.read(file, tables.SCORE).to_pylist()
    if not rows:
        return [(label, "", f"no scores: {ended_training.reason(file)}")]
    by_benchmark = itertools.groupby(rows, key=lambda row: row["benchmark"])
    cells = [(str(name), list(own)) for name, own in by_benchmark]
    records = score_table.records(file)
    prompts = {name: score_table.prompt_name(records.get((own[-1]["step"], name), {})) for name, own in cells}
    return [(label, name, score_text(own, prompts[name])) for name, own in cells]


def verdict_cells(graded: Path) -> tuple[str, str, str]:
    """Run, share correct, and how many completions have no verdict about an answer, of a folder of graded tables."""
    counts = Counter[str]()
    for file in paths.tables(graded):
        counts.update(pq.read_table(file, columns=["verdict"])["verdict"].to_pylist())
    others = "".join(f", {counts[kind]:,} {kind.replace('_', ' ')}" for kind in UNDECIDED if counts[kind])
    label = run_label(graded.parent)
    accuracy = accuracy_so_far.summary(label, accuracy_so_far.read(graded))
    return label, accuracy, f"{counts.total():,} completions graded{others}"


def contamination_cells(file: Path) -> list[tuple[str, ...]]:
    """What the base model of a run completes of its benchmarks and of their twins, a row per share of the question."""
    label, rows = run_label(file.parent), pd.read_csv(file).to_dict("records")
    return [
        (
            label, str(row["benchmark"]), str(row["kind"]), f"first {row['share']} % shown",
            ", ".join(f"{name.replace('_', ' ')} {100 * row[name]:.1f} %" for name in MEASURES),
            f"{row['problems']} questions",
        )
        for row in rows
    ]  # fmt: skip


def aligned(rows: Sequence[Sequence[str]], most: int = MOST_LINES) -> list[str]:
    """Rows of cells as lines with columns; no more than `most` of them, then how many there are."""
    widths = [max(map(len, column)) for column in itertools.zip_longest(*rows, fillvalue="")]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows[:most]]
    return lines + ([f"… and {len(rows) - most} more"] if len(rows) > most else [])


def command_text(job: TargetJob) -> list[str]:
    """The result of a target's command: its log, or the text beside its output if the log was printed already."""
    if job.rule.norun or job.rule.has_wildcards():
        return []
    if "| tee " in (job.rule.shellcmd or ""):
        return text_lines([Path(output).with_suffix(".md") for output in job.output[:1]])
    return text_lines(map(Path, job.log))


def text_lines(files: Iterable[Path]) -> list[str]:
    """The lines of those of some text files that exist."""
    texts = [file.read_bytes()[-MAX_BYTES:].decode("utf-8", "replace") for file in files if file.is_file()]
    return [visible(line) for text in texts if text.strip() for line in text.strip("\n").split("\n")]


def files_text(files: Sequence[Path]) -> list[str]:
    """What result files say, and where they are: pages if there are any, else all files."""
    scores = [file for file in files if file.name == RUN.scores.name]
    files = [file for file in files if file.name != RUN.graded.name or file.with_name(RUN.scores.name) not in scores]
    graded = [file for file in files if file.name == RUN.graded.name]
    contamination = [file for file in files if file.name == CONTAMINATION]
    lines = aligned([row for file in scores for row in score_cells(file)])
    lines += aligned([verdict_cells(folder) for folder in graded])
    lines += aligned([row for file in contamination for row in contamination_cells(file)])
    for file in (file for file in files if file.suffix == ".txt"):  # of parse_runs
        lines.append(f"{file.stem}: {visible(file.read_text(encoding='utf-8')).strip()}")
    pages = [file for file in files if file.suffix == ".html"]
    lines += [line for page in pages if page.name == "index.html" for line in text_lines([page.with_suffix(".md")])]
    return lines + ([*map(_absolute, pages)] if pages else location(files))


def location(files: Sequence[Path]) -> list[str]:
    """The paths of files; of many, the folder that holds them all."""
    files = [file.parent if file.name == ".stamp" else file for file in files]  # of an environment
    if len(files) <= 3:
        return [*map(_absolute, files)]
    return [_absolute(Path(os.path.commonpath(files)))]


def _absolute(path: Path) -> str:
    return visible(str(path.absolute()))


def result_lines(jobs: Iterable[TargetJob]) -> list[str]:
    """The results of targets: what their commands printed, then what their files say and where these are."""
    lines: list[str] = []
    files: dict[Path, None] = {}
    for job in jobs:
        lines += command_text(job)
        files |= dict.fromkeys(map(Path, job.input if job.rule.norun else job.output))
    text = files_text([file for file in files if file.exists()])
    if lines and _absolute(Path(lines[-1])) in text:  # a command's last line
        lines.pop()
    return [*lines, *text]


class NothingToDo(logging.Handler):
    """Calls a function when Snakemake says that nothing is to be done, which calls no hook.

    Args:
        call: the function.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        """Watch Snakemake's messages."""
        super().__init__()
        self.call = call

    def emit(self, record: logging.LogRecord) -> None:
        """Take a message."""
        if record.getMessage() == NOTHING_TO_BE_DONE_MSG:
            self.call()


def print_at_exit(jobs: Iterable[TargetJob]) -> None:
    """Print the results of targets as the last that this process says."""
    try:
        lines = result_lines(jobs)
    except (UserError, OSError, pa.ArrowException) as error:  # damaged or deleted since
        lines = [f"the results cannot be shown: {visible(str(error))}"]
    if lines:
        atexit.register(print, "\n".join(lines))


def show(jobs: Callable[[], Iterable[TargetJob]]) -> None:
    """Print the results also where nothing is to be done.

    Args:
        jobs: asked for the jobs of the targets; none in a dry run.
    """
    if attached_handler(NothingToDo) is None:  # Snakemake reads the Snakefile more than once
        logger.addHandler(NothingToDo(lambda: print_at_exit(jobs())))
