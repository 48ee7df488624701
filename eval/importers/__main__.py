"""Import generations made elsewhere.

python -m eval.importers --format qwen-math|lm-eval|lighteval|jsonl --input FILE… --benchmark NAME --run NAME
    --output FILE [--map completion=FIELD,gold=FIELD,…]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from contracts import provenance, tables
from contracts.errors import UserError, run_command
from eval.importers.formats import FORMATS, jsonl


def parse_mapping(text: str) -> dict[str, str]:
    """`completion=response,gold=answer` as a dictionary from our columns to the file's fields."""
    mapping = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    unknown = [column for column in mapping if column not in tables.SAMPLE.names]
    if unknown:
        raise UserError(f"--map has no column {', '.join(unknown)}; choose from {', '.join(tables.SAMPLE.names)}")
    if not {"completion", "gold"} <= mapping.keys():
        raise UserError("--map should say at least which fields are completion and gold: --map completion=…,gold=…")
    return mapping


def import_samples(
    layout: str,
    paths: Sequence[Path],
    benchmark: str,
    run: str,
    *,
    step: int = 0,
    mapping: dict[str, str] | None = None,
) -> pa.Table:
    """The samples of some files as a table of contracts.tables.SAMPLE; what a layout does not say stays null."""
    rows = []
    for path in paths:
        for row in jsonl(path, mapping or {}) if layout == "jsonl" else FORMATS[layout](path):
            rows.append({"run": run, "step": step, "benchmark": benchmark, "protocol": f"imported:{layout}", **row})
    if not rows:
        raise UserError(
            f"{', '.join(map(str, paths))} should hold generations but hold none; check --format and --input"
        )
    seen: set[tuple[str, int]] = set()
    for row in rows:  # several files may be several repeats of the same problems
        while (row["problem_id"], row["repeat"]) in seen:
            row["repeat"] += 1
        seen.add((row["problem_id"], row["repeat"]))
    try:
        return pa.Table.from_pylist(rows, schema=tables.SAMPLE)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UserError(f"{paths[0]} holds values of the wrong type ({error}); check --format and --map") from None


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", required=True, choices=[*FORMATS, "jsonl"])
    parser.add_argument("--input", type=Path, nargs="+", required=True, metavar="FILE")
    parser.add_argument("--benchmark", required=True)
    parser.add_argument("--run", required=True, help="a name for where the generations come from")
    parser.add_argument("--step", type=int, default=0, help="training step of the checkpoint that made them")
    parser.add_argument("--map", default="", help="for jsonl: completion=FIELD,gold=FIELD,…")
    parser.add_argument("--output", type=Path, required=True, help="the sample table to write (Parquet)")
    arguments = parser.parse_args()
    mapping = parse_mapping(arguments.map) if arguments.format == "jsonl" else None
    table = import_samples(
        arguments.format, arguments.input, arguments.benchmark, arguments.run, step=arguments.step, mapping=mapping
    )
    tables.write(table, tables.SAMPLE, arguments.output)
    provenance.write(
        arguments.output,
        imported={str(path): provenance.sha256(path) for path in arguments.input},
        layout=arguments.format,
    )
    unknown = [name for name in table.column_names if table.column(name).null_count == len(table)]
    print(f"{len(table)} samples written to {arguments.output}")
    if unknown:
        print(f"Not known from this layout, left null: {', '.join(unknown)}", file=sys.stderr)


if __name__ == "__main__":
    run_command(main)
