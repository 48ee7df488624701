"""Imports the log of a training that was made without us, so that reports show it beside ours.

crosszero import-log --framework NAME --input FILE … --run imported/mine
    --output results/demo/runs/imported/mine/training_log.parquet [--max-response-tokens N] [--source TEXT]

Reads what the framework's own loggers write (docs/how-to/import.md lists them), and CSV: an export of Weights & Biases
or Trackio with the framework's names of metrics. A published curve as CSV with our columns, and TensorBoard events of
this project, need no --framework.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts import provenance, tables
from contracts.paths import ResultsFolder
from contracts.run_file import framework_names
from frameworks import adapter, tensorboard_events, training_log_csv
from system.command_line import argument_parser
from system.errors import UserError, run_command

Row = dict[str, Any]
# What other programs write, and what is wanted instead; looked for in the beginning of a file
_AS_CSV = "export the run's metrics from Weights & Biases as CSV, and name its columns as in docs/how-to/import.md"
OTHER_PROGRAMS = {
    r"(?m)\bStep \d+ \|.*\|": f"prime-rl's console text: {_AS_CSV}",
    r"(?m)\b(?:step|rollout|perf) \d+: \{'(?:train|rollout|perf)/": f"slime's console text: {_AS_CSV}",
}
BEGINNING = 1 << 16  # characters
DERIVED_FROM = ("response_length/clip_ratio", "total_length", "rollout/num_samples", "step", "epoch")
LAST_STEP = 10**9  # more are a mistake, such as a time
OURS = tuple(field.name for field in tables.TRAINING_LOG if pa.types.is_floating(field.type))


def _metrics_of_file(file: Path, framework: adapter.Adapter | None) -> dict[int, dict[str, float]]:
    """By step, the metrics in one file, under the framework's names or ours."""
    if not file.is_file():
        reason = "it is a folder" if file.is_dir() else "there is no such file"
        raise UserError(
            f"{file} should be a training log, but {reason}: name the file", code="missing-file", path=str(file)
        )
    _refuse_other_programs(file)
    if file.suffix.lower() == ".csv":
        logged = training_log_csv.read(file, _known_names(framework))
    elif framework is None and file.match(tensorboard_events.PATTERN):  # ours
        logged = tensorboard_events.metrics_of_file(file, prefix="")
    elif framework is None:
        raise UserError(
            f"{file} is no CSV (.csv, with commas): name the framework that wrote it with --framework, or export CSV",
            code="missing-framework",
            path=str(file),
        )
    else:
        try:
            logged = framework.metrics_of_file(file)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise UserError(
                f"{file} is not a log as this framework writes it, or is damaged ({type(error).__name__}: {error}): "
                "choose the --framework that wrote it, or copy it again",
                code="unreadable-training-log",
                path=str(file),
            ) from None
    for step in logged:
        if type(step) is not int or not 0 <= step <= LAST_STEP:
            raise UserError(
                f"{file} should number its steps from 0 to {LAST_STEP}, but has {step!r}: correct it, or copy it again",
                code="step-out-of-range",
                step=step,
            )
    return logged


def _refuse_other_programs(file: Path) -> None:
    """Raise UserError for a log that no framework here writes, with what to import instead."""
    with file.open(encoding="utf-8", errors="replace") as stream:
        text = stream.read(BEGINNING)
    own = {key: text for name in framework_names() for key, text in adapter.load(name).unnumbered_text.items()}
    for pattern, program in (OTHER_PROGRAMS | own).items():
        if re.search(pattern, text):
            raise UserError(f"{file} is {program}", code="log-of-another-program", path=str(file))


def _refuse_other_frameworks(file: Path, framework: str | None) -> None:
    """Raise UserError for a log that another framework than the named one reads."""
    for name in framework_names():
        other = adapter.load(name)
        with contextlib.suppress(Exception):  # whatever a reader says of another's file
            steps = other.per_step(other.metrics_of_file(file)).values()
            if name != framework and any(values.keys() & _known_names(other) for values in steps):
                break
    else:
        return
    sentence = f"{file} is a log of {name}: give --framework {name}"
    raise UserError(sentence, code="log-of-another-framework", path=str(file), framework=name)


def _known_names(framework: adapter.Adapter | None) -> set[str]:
    native = {**framework.metrics, **framework.imported_metrics, **framework.earlier_names} if framework else {}
    return {*native, *DERIVED_FROM, *OURS}


def unknown_names(files: Sequence[Path], framework: str | None) -> dict[str, str]:
    """The metrics in some files that are not known, with the nearest known name; empty where none is near."""
    known_framework = adapter.load(framework) if framework else None
    known, names = _known_names(known_framework), dict[str, None]()
    for file in files:
        if file.suffix.lower() == ".csv":
            names |= dict.fromkeys(training_log_csv.unknown_columns(file, known))
        else:
            steps = _metrics_of_file(file, known_framework)
            steps = known_framework.per_step(steps) if known_framework else steps
            names |= dict.fromkeys(name for values in steps.values() for name in values if name not in known)
    return {name: next(iter(difflib.get_close_matches(name, known, 1, 0.75)), "") for name in names}


def _number(name: str, value: object, step: int, files: Sequence[Path]) -> float:
    """A metric of a step; raises UserError if it is no number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise UserError(
        f"{', '.join(map(str, files))} should hold numbers, but {name} at step {step} is {repr(value)[:40]}: "
        "correct it, or leave that metric out",
        code="metric-not-a-number",
        metrics=[name],
        step=step,
    )


def read(files: Sequence[Path], framework: str | None, run: str, max_response_tokens: int | None = None) -> list[Row]:
    """Rows of contracts.tables.TRAINING_LOG; null where the files do not tell.

    Args:
        files: of one training; where they repeat a metric of a step, the later file counts.
        framework: the one that wrote them, if they do not have our columns.
        run: what tables call it.
        max_response_tokens: the limit of the training, if known.

    Raises:
        UserError: a file cannot be read, or there is no metric in any.
    """
    known, logged = adapter.load(framework) if framework else None, dict[int, dict[str, float]]()
    for file in files:
        try:
            steps = _metrics_of_file(file, known)
        except UserError:
            _refuse_other_frameworks(file, framework)
            raise
        for step, values in steps.items():
            logged.setdefault(step, {}).update(values)
    logged = {step: known.todays_names(values) if known else values for step, values in sorted(logged.items())}
    rows: list[Row] = []
    elapsed, step_before, nulls = 0.0, 0, dict.fromkeys(tables.TRAINING_LOG.names)
    for step, values in (known.per_step(logged) if known else logged).items():
        numbers = {name: values[name] for name in OURS if name in values}
        if known:
            columns = known.our_columns(values, max_response_tokens)
            renamed = {ours: values[native] for native, ours in known.imported_metrics.items() if native in values}
            numbers = columns | renamed | numbers
        numbers = {name: _number(name, value, step, files) for name, value in numbers.items()}
        seconds, tokens = numbers.pop("seconds", None), numbers.pop("tokens", None)
        elapsed, step_before = elapsed + (seconds or 0.0) * (step - step_before), step
        timed = {"wall_time": elapsed if seconds else None, "step_seconds": seconds,
                 "tokens_per_second": tokens / seconds if seconds and tokens is not None else None}  # fmt: skip
        metrics = {name: value for name, value in numbers.items() if name in OURS}
        if metrics:
            rows.append(nulls | timed | metrics | {"run": run, "stage": 1, "step": step})
    if not rows:
        _refuse_other_frameworks(files[0], framework)
        raise UserError(
            f"{', '.join(map(str, files))} should hold metrics of a training but hold none that is known; check "
            "--framework and --input",
            code="no-known-metrics",
        )
    return rows


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--framework", choices=framework_names(), help="that wrote the log")
    parser.add_argument("--input", type=Path, nargs="+", required=True, metavar="FILE")
    parser.add_argument("--run", required=True, help="a name such as imported/mine")
    parser.add_argument("--max-response-tokens", type=int, help="of the training; tells what was truncated")
    parser.add_argument("--source", default="", help="where the log is from; pages show it")
    parser.add_argument("--output", type=Path, required=True, help="the table to write (Parquet)")
    arguments = parser.parse_args()
    ResultsFolder(Path()).run(arguments.run)
    if arguments.max_response_tokens is not None and arguments.max_response_tokens < 1:
        raise UserError(
            f"--max-response-tokens should be 1 or more, but is {arguments.max_response_tokens}: correct it",
            code="number-out-of-range",
            option="--max-response-tokens",
        )
    rows = read(arguments.input, arguments.framework, arguments.run, arguments.max_response_tokens)
    table = pa.Table.from_pylist(rows, schema=tables.TRAINING_LOG)
    tables.write(table, tables.TRAINING_LOG, arguments.output)
    provenance.write(
        arguments.output,
        imported={str(path): provenance.sha256(path) for path in arguments.input},
        framework=arguments.framework,
        source=arguments.source,
        max_response_tokens=arguments.max_response_tokens,
    )
    steps = table["step"].to_pylist()
    print(f"{len(steps)} steps, {steps[0]} to {steps[-1]}, written to {arguments.output}")
    distances = {after - before for before, after in pairwise(steps)}
    if len(distances) > 1:
        print(f"Steps between the rows: {min(distances)} to {max(distances)}")
    if others := unknown_names(arguments.input, arguments.framework):
        listed = ", ".join(f"{name} (nearest: {near})" if near else name for name, near in others.items())
        print(f"Not known, left out: {listed}")
    if unknown := [name for name in OURS if table[name].null_count == len(table)]:
        print(f"Not in these files, left null: {', '.join(unknown)}")


if __name__ == "__main__":
    run_command(main)
