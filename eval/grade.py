"""The grading stage: read the stored samples of a run, have `grading` judge them, write their verdicts. No GPU.

    crosszero grade-samples --samples samples --data results/demo/data/benchmarks --output graded [--grader math-verify]

reads samples/step-<n>/<benchmark>.parquet and writes graded/step-<n>/<benchmark>.parquet.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts import ended_training, paths, provenance, tables
from eval import benchmark, protocols
from eval import subset as subsets
from eval.importers.missing_answers import MOST, without_answer
from grading.verdicts import DEFAULT, Grade, Item, grade
from system.command_line import argument_parser
from system.errors import UserError, run_command

# What a graded table's record repeats of its samples' record: how they were sampled.
KEPT_OF_RECORD = (
    "protocol", "prompt", "chat_template_sha256", "repeats", "overrides", "seed", "completion_budget", "checkpoint",
    "model_sha256", "quantised",
)  # fmt: skip


def grade_benchmark(
    completions: Sequence[Mapping[str, Any]],
    problems: Mapping[str, Mapping[str, Any]],
    *,
    extraction: str,
    grader: str | None = None,
) -> list[Grade]:
    """Grade completions of one benchmark; lm-eval's filter (eval.lm_eval_filter) calls this too.

    Args:
        completions: each with problem_id, completion, and finish_reason (None if unknown).
        problems: by problem_id, each with task, answer and meta (contracts.tables.PROBLEM).
        extraction: where to look for an answer without a box, one of eval.protocols.EXTRACTIONS.
        grader: one of GRADERS; by default math-verify. Tasks with a verifier of their own ignore it.

    Returns:
        One grade per completion, in their order.
    """
    items = []
    for row in completions:
        problem = problems[row["problem_id"]]
        items.append(
            Item(
                task=problem["task"],
                gold=problem["answer"],
                completion=row["completion"],
                finish_reason=row["finish_reason"],
                meta=problem["meta"],
                extraction=extraction,
            )
        )
    return grade(items, grader=grader or DEFAULT)


FROM_PROBLEM = {"gold": "answer", "cluster": "cluster"}  # columns of GRADED that are columns of PROBLEM


def grade_table(samples: pa.Table, problems: pa.Table, path: Path, extraction: str, grader: str | None) -> pa.Table:
    """The graded table of a sample table, in the order of the problems and their repeats.

    Args:
        samples: of one checkpoint and benchmark (SAMPLE).
        problems: the benchmark's (PROBLEM); their answers replace the samples' own golds.
        path: where the samples are from, for messages.
        extraction: as in grade_benchmark.
        grader: as in grade_benchmark.

    Raises:
        UserError: a sample is missing, is there twice, or is of a problem that the benchmark does not have.
    """
    rows = {(row["problem_id"], row["repeat"]): row for row in samples.to_pylist()}
    if len(rows) != len(samples):
        raise UserError(
            f"{path} has {len(samples)} rows for {len(rows)} samples: each should be there once",
            code="duplicate-samples",
            path=str(path),
        )
    repeats = max((repeat for _, repeat in rows), default=0) + 1
    by_id = {problem["problem_id"]: problem for problem in problems.to_pylist()}
    requested = [(problem_id, repeat) for problem_id in by_id for repeat in range(repeats)]
    if missing := set(requested) - set(rows):
        raise UserError(
            f"{path} should have {len(requested)} samples, {repeats} for each problem of {path.stem}; {len(missing)} "
            f"are missing and {len(set(rows) - set(requested))} are of other problems",
            code="missing-samples",
            count=len(missing),
        )
    if strangers := set(rows) - set(requested):
        raise UserError(
            f"{path} has {len(strangers)} samples of problems that {path.stem} does not have",
            code="other-problems",
            count=len(strangers),
        )
    ordered = [rows[key] for key in requested]
    grades = grade_benchmark(ordered, by_id, extraction=extraction, grader=grader)
    graded = [
        {
            **row,
            **{name: by_id[row["problem_id"]][column] for name, column in FROM_PROBLEM.items()},
            **dataclasses.asdict(result),
        }
        for row, result in zip(ordered, grades, strict=True)
    ]
    return pa.Table.from_pylist(graded, tables.GRADED)


def extraction_of(samples: pa.Table, path: Path, chosen: str | None) -> str:
    """Where to look for an answer without a box.

    Args:
        samples: of one protocol (SAMPLE).
        path: where the samples are from, for messages.
        chosen: the rule to use, or None for that of the samples' protocol, with what their record says was overridden.

    Raises:
        UserError: none is chosen, and the protocol is not one of ours, as for imported samples.
    """
    protocol = single_value(samples, "protocol", path)
    if chosen:
        return chosen
    if protocol not in protocols.names():
        raise UserError(
            f"the samples in {path} were made under '{protocol}', which is not in eval/protocols.yaml: say with "
            f"--extraction where to look for an answer without a box ({', '.join(protocols.EXTRACTIONS)})",
            code="missing-extraction",
            protocol=protocol,
        )
    return protocols.load(protocol, provenance.read(path).get("overrides")).extraction


def single_value(table: pa.Table, column: str, path: Path) -> Any:
    """The value that a column has in every row of the table read from `path`; UserError if it has several, or none."""
    values = table[column].unique().to_pylist()
    if len(values) != 1:
        raise UserError(
            f"{path} should have one {column}, and has: {', '.join(map(str, values)) or 'no rows'}",
            code="not-one-value",
            column=column,
            values=values,
        )
    return values[0]


def grade_file(path: Path, output: Path, data: Path, extraction: str | None, grader: str | None) -> int:
    """Grade one sample table into `output`, with its provenance; returns the number of samples.

    Args:
        path: `<folder>/<benchmark>.parquet`.
        output: the graded table to write.
        data: folder of the benchmarks' problem tables.
        extraction: by default the protocol's.
        grader: by default grading's.
    """
    benchmark.check_names([path.stem])
    samples = tables.read(path, tables.SAMPLE)
    extraction = extraction_of(samples, path, extraction)
    problems, record = benchmark.problems(data, path.stem), provenance.read(path)  # no record of imported samples
    if limited := subsets.from_record(record):
        problems = limited.rows(problems)
    graded = grade_table(samples, problems, path, extraction, grader)
    tables.write(graded, tables.GRADED, output)
    lost = sum(verdict in ("no_answer", "format_error") for verdict in graded["verdict"].to_pylist())
    imported = (graded["protocol"][0].as_py() or "").startswith("imported:")
    if imported and grader in (None, DEFAULT) and lost > MOST * len(graded):
        warning = without_answer(graded["completion"].to_pylist(), benchmark.task_of(path.stem), extraction)
        print(f"{path.stem}: {warning}", file=sys.stderr)
    provenance.write(
        output,
        samples={key: record[key] for key in KEPT_OF_RECORD if key in record},
        samples_sha256=provenance.sha256(path),
        problems_sha256=benchmark.problems_hash(data, path.stem),
        grader=single_value(graded, "grader", output),
        extraction=extraction,
        subset=record.get("subset"),
        delivered=len(samples),
        graded=len(graded),
        verdicts=dict(sorted(Counter(graded["verdict"].to_pylist()).items())),
    )
    return len(graded)


def main() -> None:
    """Grade every table in --samples."""
    parser = argument_parser(__doc__)
    parser.add_argument("--samples", required=True, type=Path, help="folder with step-<n>/<benchmark>.parquet")
    parser.add_argument("--data", required=True, type=Path, help="folder of the benchmarks' problem tables")
    parser.add_argument("--output", required=True, type=Path, help="folder for step-<n>/<benchmark>.parquet")
    parser.add_argument("--grader", help="default: math-verify, or the task's own verifier where it has one")
    protocols.add_extraction_option(
        parser, None, "where to look for an answer without a box (default: as the protocol says)"
    )
    arguments = parser.parse_args()
    if why := ended_training.reason(arguments.samples):
        ended_training.write_absence(arguments.output, why)
        return
    sample_tables = paths.tables(arguments.samples)
    if not sample_tables:
        raise UserError(
            f"{arguments.samples} has no samples to grade: it should hold step-<n>/<benchmark>.parquet",
            code="no-samples",
            path=str(arguments.samples),
        )
    started, count = time.monotonic(), 0
    for path in sample_tables:
        output = arguments.output / path.relative_to(arguments.samples)
        count += grade_file(path, output, arguments.data, arguments.extraction, arguments.grader)
    seconds = time.monotonic() - started
    print(f"grade: {count} samples in {len(sample_tables)} tables, {count / seconds:.0f}/s", file=sys.stderr)


if __name__ == "__main__":
    run_command(main)
