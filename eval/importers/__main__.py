"""Import generations made elsewhere.

crosszero import-samples --format qwen-math|lm-eval|lighteval|inspect|jsonl --input FILE… --benchmark NAME --run NAME
    --output FILE [--problems TABLE [--match question|id|order]] [--metric NAME]
    [--map completion=FIELD,gold=FIELD,question=FIELD,…]

With --problems, the benchmark's problem table, the samples get its ids and gold answers. The file's own ids, golds and
verdicts go into OUTPUT.source.jsonl. Without it, a file that cannot be of the benchmark is refused by the number of its
problems, the form of its golds, and its questions if the table is in results/<scale>/data/benchmarks.

The percentage of each of the file's own metrics is printed; --metric says which verdicts to keep, by default the first.

--map gives the fields of plain JSONL: completion and gold always; question (or prompt, the whole text that was sent) to
match problems by it; right for the file's own verdicts.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pyarrow as pa

from contracts import provenance, tables
from eval import benchmark as benchmarks
from eval.importers.formats import FORMATS, Row
from eval.importers.gold_differences import gold_differences, other_golds_text
from eval.importers.import_samples import check_sample_names, import_samples, parse_mapping, source_file
from eval.importers.missing_answers import without_answer
from eval.importers.problem_matching import WAYS
from system import durable, json_lines
from system.command_line import argument_parser
from system.errors import run_command


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--format", required=True, choices=[*FORMATS, "jsonl"])
    parser.add_argument("--input", type=Path, nargs="+", required=True, metavar="FILE")
    parser.add_argument("--benchmark", required=True)
    parser.add_argument("--run", required=True, help="a name for where the generations come from")
    parser.add_argument("--step", type=int, default=0, help="training step of the checkpoint that made them")
    parser.add_argument("--problems", type=Path, help="the benchmark's problem table: take its ids and gold answers")
    parser.add_argument("--match", choices=WAYS, default="question", help="how to match problems (default: question)")
    parser.add_argument(
        "--allow-missing", action="store_true", help="import what matches the problems, and list the others"
    )
    parser.add_argument(
        "--metric", help="which of the file's own verdicts to keep, such as math_verify,none (default: the first)"
    )
    parser.add_argument("--map", default="", help="for jsonl: completion=FIELD,gold=FIELD,question=FIELD,…")
    parser.add_argument("--output", type=Path, required=True, help="the sample table to write (Parquet)")
    return parser.parse_args()


def write_samples(table: pa.Table, source: list[Row], arguments: argparse.Namespace) -> None:
    """Write the sample table, and beside it what the other harness said and where the samples are from."""
    tables.write(table, tables.SAMPLE, arguments.output)
    durable.write_text(source_file(arguments.output), "".join(json_lines.dump(row) for row in source))
    provenance.write(
        arguments.output,
        imported={str(path): provenance.sha256(path) for path in arguments.input},
        layout=arguments.format,
        matched_by=arguments.match if arguments.problems else None,
        problems_file_sha256=provenance.sha256(arguments.problems) if arguments.problems else None,
    )


def print_summary(table: pa.Table, source: list[Row], arguments: argparse.Namespace) -> None:
    """How many samples there are, and what their file did not say."""
    unknown = [name for name in table.column_names if table.column(name).null_count == len(table)]
    print(f"{len(table)} samples written to {arguments.output}")
    if arguments.problems:
        print(f"Matched by {arguments.match}: the benchmark's golds are used")
        print_differences(table, source, tables.read(arguments.problems, tables.PROBLEM))
    print(without_answer(table["completion"].to_pylist(), benchmarks.task_of(arguments.benchmark)))
    if unknown:
        print(f"Not in this layout, left null: {', '.join(unknown)}", file=sys.stderr)


def print_differences(table: pa.Table, source: list[Row], problems: pa.Table) -> None:
    """How the file's golds and problems differ from the benchmark's."""
    ids = table["problem_id"].to_pylist()
    rows = [{**row, "problem_id": problem_id} for row, problem_id in zip(source, ids, strict=True)]
    written, other = gold_differences(rows, problems)
    if written:
        print(f"{written} golds are written differently")
    if other:
        print(
            f"*** {other_golds_text(other)}: check that the file is of this benchmark and its order, or give "
            "--match question ***"
        )
    if count := len(problems) - len(set(ids)):
        print(
            f"{count} of {len(problems)} problems have no sample: `crosszero grade` takes the file as it is, "
            "eval.grade needs them all"
        )


def main() -> None:
    """Import, write, and print a summary."""
    arguments = parse_arguments()
    check_sample_names(arguments.benchmark, arguments.run, arguments.step)
    mapping = parse_mapping(arguments.map) if arguments.format == "jsonl" else None
    problems = tables.read(arguments.problems, tables.PROBLEM) if arguments.problems else None
    table, source = import_samples(
        arguments.format,
        arguments.input,
        arguments.benchmark,
        arguments.run,
        step=arguments.step,
        mapping=mapping,
        problems=problems,
        by=arguments.match,
        allow_missing=arguments.allow_missing,
        results=Path("results"),
        metric=arguments.metric,
    )
    write_samples(table, source, arguments)
    print_summary(table, source, arguments)


if __name__ == "__main__":
    run_command(main)
