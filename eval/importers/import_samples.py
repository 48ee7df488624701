"""Samples from the files of another harness, with our problems' ids and golds where they are known."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa

from contracts import tables
from eval import benchmark as benchmarks
from eval.importers import harness_verdicts
from eval.importers.benchmark_check import check_fit
from eval.importers.formats import FORMATS, Row, jsonl
from eval.importers.problem_matching import match
from system import json_lines
from system.errors import UserError
from tasks.gold_answers import after_hash_marks
from tasks.latex_boxes import last_boxed_gold

COLUMNS = (*tables.SAMPLE.names, "question", "right")  # the question is matched, not stored
NEW_BENCHMARK = """\
    include: _base_yaml
    task: crosszero_NAME
    metadata:
      source:  # keys: see tasks/dataset_specs.py
        task: math
        rows: 100
        columns: {question: problem, answer: answer}
        files: [{path: benchmarks/NAME.jsonl}]"""
LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character: JSON can escape it, UTF-8 cannot encode it


def parse_mapping(text: str, needed: Collection[str] = ("completion", "gold")) -> dict[str, str]:
    """`completion=response,gold=answer` as a dictionary from our columns to the file's fields."""
    mapping = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    unknown = [column for column in mapping if column not in COLUMNS]
    if unknown:
        raise UserError(
            f"--map has no column {', '.join(unknown)}; choose from {', '.join(COLUMNS)}",
            code="unknown-field",
            fields=unknown,
        )
    if not set(needed) <= mapping.keys():
        raise UserError(
            f"--map should give at least the fields of {' and '.join(needed)}: --map completion=…,gold=…",
            code="missing-field",
        )
    return mapping


def replace_surrogates(rows: Sequence[Row]) -> int:
    """Replace each lone surrogate in the rows' strings by U+FFFD; returns how many there were."""
    count = 0
    for row in rows:
        for column, value in row.items():
            if isinstance(value, str):
                row[column], replaced = LONE_SURROGATE.subn("\ufffd", value)
                count += replaced
    return count


def read_rows(layout: str, paths: Sequence[Path], mapping: dict[str, str] | None = None) -> list[Row]:
    """The rows of some files (see eval.importers.formats); their own id and gold are kept as `source_…`.

    Args:
        layout: a key of FORMATS; ignored where there is a mapping.
        paths: the files, read one after the other.
        mapping: the fields of plain JSONL, see `parse_mapping`.

    Raises:
        UserError: a file cannot be read as this layout, or there are no generations.
    """
    rows = []
    for path in paths:
        try:
            rows += list(jsonl(path, mapping) if mapping else FORMATS[layout](path))
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise UserError(
                f"{path} is not as {layout} writes it, or is damaged ({type(error).__name__}: {error}): choose the "
                "--format that wrote it, or copy it again",
                code="other-format",
                path=str(path),
            ) from None
    if not rows:
        raise UserError(
            f"{', '.join(map(str, paths))} should hold generations but hold none; check --format and --input",
            code="no-generations",
        )
    if replaced := replace_surrogates(rows):
        print(f"Lone surrogates (halves of characters) replaced by U+FFFD: {replaced:,}", file=sys.stderr)
    if empty := sum(not row["completion"].strip() for row in rows):
        print(f"{empty} of {len(rows)} completions are empty or null: they count as without an answer", file=sys.stderr)
    with_source = [{**row, "source_id": row["problem_id"], "source_gold": row["gold"]} for row in rows]
    if whole := sum(_replace_solution_by_answer(row) for row in with_source):
        print(
            f"{whole} golds are whole solutions: the answer in their last box, or after ####, is used", file=sys.stderr
        )
    return with_source


def _replace_solution_by_answer(row: Row) -> bool:
    """Replace a gold that is a whole solution by its answer; returns whether it was one."""
    gold = row["gold"]
    answer = last_boxed_gold(gold) if "\\boxed" in gold or "\\fbox" in gold else after_hash_marks(gold)
    row["gold"] = answer or gold
    return answer is not None


def check_sample_names(benchmark: str, run: str, step: int) -> None:
    """Check what the samples will be called.

    Args:
        benchmark: must exist in eval/benchmarks.
        run: path-like, of letters, digits and . _ + -; it becomes a folder under results/<scale>/runs/.
        step: training step, 0 or above.

    Raises:
        UserError: one of them is not valid.
    """
    try:
        benchmarks.check_names([benchmark])
    except UserError as error:
        raise UserError(
            f"{error}. To add it, write eval/benchmarks/{benchmark}.yaml:\n{NEW_BENCHMARK}",
            code=error.code,
            **error.facts,
        ) from None
    if not re.fullmatch(r"\w[\w.+-]*(/\w[\w.+-]*)*", run):
        raise UserError(
            f"--run should be a name such as mine or imported/mine, of letters, digits and . _ + -, but is {run!r}",
            code="invalid-run-id",
            name=run,
        )
    if step < 0:
        raise UserError(
            f"--step should be the training step of the checkpoint, 0 or above, but is {step}",
            code="argument-out-of-range",
            option="--step",
        )


def to_samples(rows: Sequence[Row], layout: str, benchmark: str, run: str, step: int) -> pa.Table:
    """Rows as a table of contracts.tables.SAMPLE; columns that a layout does not have are null.

    Args:
        rows: one per completion.
        layout: recorded as the protocol, `imported:<layout>`.
        benchmark: the benchmark's name.
        run: a name for where the generations come from.
        step: training step of the checkpoint that made them.
    """
    whole = [
        {**row, "run": run, "step": step, "benchmark": benchmark, "protocol": f"imported:{layout}"} for row in rows
    ]
    try:
        return pa.Table.from_pylist(whole, schema=tables.SAMPLE)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UserError(
            f"the generations hold values of the wrong type ({error}); check the fields and --map", code="wrong-type"
        ) from None


def number_repeats(rows: Sequence[Row]) -> None:
    """Give rows of the same problem different repeats: several files may be several repeats of it."""
    following: dict[tuple[str, int], int] = {}  # of each that is taken, the next that may be free
    for row in rows:
        first = row["problem_id"], row["repeat"]
        while (key := (row["problem_id"], row["repeat"])) in following:
            row["repeat"] = following[key]
        following[first] = following[key] = row["repeat"] + 1


def import_samples(
    layout: str,
    paths: Sequence[Path],
    benchmark: str,
    run: str,
    *,
    step: int = 0,
    mapping: dict[str, str] | None = None,
    problems: pa.Table | None = None,
    by: str = "question",
    allow_missing: bool = False,
    results: Path | None = None,
    metric: str | None = None,
) -> tuple[pa.Table, list[Row]]:
    """The samples of some files, and per sample the files' own id, gold and verdict (right or not).

    Args:
        layout: a key of FORMATS, or jsonl.
        paths: the files.
        benchmark: the benchmark's name.
        run: a name for where the generations come from.
        step: training step of the checkpoint that made them.
        mapping: the fields of plain JSONL, see `parse_mapping`.
        problems: the benchmark's (PROBLEM); the samples get their ids and golds.
        by: how problems are matched, see eval.importers.problem_matching.
        allow_missing: leave out generations that match no problem.
        results: folder with <scale>/data/benchmarks, whose questions are compared where `problems` is not given.
        metric: which of the file's own verdicts to keep; by default its first.

    Raises:
        UserError: a file cannot be read as this layout, a row fits no problem, or the file cannot be of the benchmark.
    """
    rows = read_rows(layout, paths, mapping)
    if problems is None and benchmark in benchmarks.names():
        stored = sorted(results.glob(f"*/data/benchmarks/{benchmark}.parquet")) if results else []
        print(check_fit(rows, benchmark, stored), file=sys.stderr)
    if problems is not None:
        if by == "question" and mapping is not None and not {"question", "prompt"} & mapping.keys():
            raise UserError(
                "to match by question, --map should give the field of the question: --map …,question=FIELD (or "
                "prompt=FIELD, a text that contains it); otherwise choose --match id or order",
                code="missing-field",
                field="question",
            )
        rows = match(rows, problems, by, allow_missing=allow_missing)
    number_repeats(rows)
    if shares := harness_verdicts.choose_metric(rows, metric):
        print(shares, file=sys.stderr)
    return to_samples(rows, layout, benchmark, run, step), source_rows(rows)


def source_rows(rows: Sequence[Row]) -> list[Row]:
    """What the files say of each sample besides the sample: their id, gold and verdicts, and the question."""
    always, if_known = ("problem_id", "repeat", "source_id", "source_gold", "right"), ("verdicts", "question")
    return [{key: row.get(key) for key in always} | {key: row[key] for key in if_known if row.get(key)} for row in rows]


def source_file(samples: Path) -> Path:
    """The file with the other harness's ids, golds and verdicts, beside a sample table."""
    return samples.with_name(f"{samples.name}.source.jsonl")


def read_verdicts(samples: Path) -> dict[tuple[str, int], bool]:
    """Whether the other harness called each sample of a table right, by problem and repeat; empty if unknown."""
    file = source_file(samples)
    rows = json_lines.read(file) if file.is_file() else iter(())
    try:
        return {(row["problem_id"], row["repeat"]): row["right"] for row in rows if row.get("right") is not None}
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{file} is damaged ({error} is missing): import the samples again", code="damaged-record", path=str(file)
        ) from None
