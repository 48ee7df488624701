"""The tables that pass from one stage to the next, as Arrow schemas in Parquet files.

problem → (train) → training log, (generate) → sample → (grade) → graded sample → (score) → score

What each column means is in contracts/columns.yaml, once for all tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from contracts import paths, provenance, steps
from system import durable
from system.errors import UserError

MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))

PROBLEM = pa.schema(
    [
        ("problem_id", pa.string()),
        ("task", pa.string()),
        ("messages", MESSAGES),
        ("answer", pa.string()),
        ("meta", pa.string()),
        ("cluster", pa.string()),
    ]
)

REWARDS = pa.list_(pa.struct([("name", pa.string()), ("fired", pa.float64()), ("mean", pa.float64())]))

PHASES = pa.list_(pa.struct([("name", pa.string()), ("seconds", pa.float64())]))

TRAINING_LOG = pa.schema(
    [
        ("run", pa.string()),
        ("stage", pa.int32()),
        ("step", pa.int64()),
        ("wall_time", pa.float64()),
        ("step_seconds", pa.float64()),
        ("reward_mean", pa.float64()),
        ("reward_std", pa.float64()),
        ("accuracy", pa.float64()),
        ("format_error_rate", pa.float64()),
        ("wrong_answer_rate", pa.float64()),
        ("response_length_mean", pa.float64()),
        ("response_length_max", pa.float64()),
        ("truncated_rate", pa.float64()),
        ("kl", pa.float64()),
        ("entropy", pa.float64()),
        ("grad_norm", pa.float64()),
        ("learning_rate", pa.float64()),
        ("zero_signal_rate", pa.float64()),
        ("tokens_per_second", pa.float64()),
        ("sampler_mismatch", pa.float64()),
        ("rewards", REWARDS),
        ("phases", PHASES),
        *[(name, pa.float64()) for name in ("host_memory_gb", "gpu_memory_gb", "gpu_utilisation")],
        *[(name, pa.float64()) for name in ("sampled_tokens", "trained_tokens", "padding_share")],
    ]
)

ROLLOUT = pa.schema(  # completions that were trained on; not all of a step, see ROLLOUTS_PER_STEP
    [
        ("run", pa.string()),
        ("stage", pa.int32()),
        ("step", pa.int64()),
        ("problem_id", pa.string()),
        ("prompt", pa.string()),
        ("completion", pa.string()),
        ("reward", pa.float64()),
        ("verdict", pa.string()),
        ("completion_tokens", pa.int32()),
    ]
)

ROLLOUTS_PER_STEP = 64  # whole groups, in the order of their problems

SAMPLE = pa.schema(
    [
        ("run", pa.string()),
        ("step", pa.int64()),
        ("benchmark", pa.string()),
        ("problem_id", pa.string()),
        ("repeat", pa.int32()),
        ("seed", pa.int64()),
        ("prompt", pa.string()),
        ("completion", pa.string()),
        ("finish_reason", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("gold", pa.string()),
        ("protocol", pa.string()),
    ]
)

GRADED = pa.schema(
    [
        *SAMPLE,
        ("answer", pa.string()),
        ("verdict", pa.string()),
        ("grader", pa.string()),
        ("cluster", pa.string()),
    ]
)

# Of one table: AIME with 64 repeats of 30 problems has 1,920 rows, the largest training set here 1.8 million
MOST_ROWS = 5_000_000
LEAST_BYTES, MOST_RATIO = 1 << 30, 200  # unpacked, or times the size of its file
BATCH = 256  # rows that are unpacked at once

VERDICTS = ("correct", "wrong", "no_answer", "truncated", "format_error", "ungradable")

SCORE = pa.schema(
    [
        ("run", pa.string()),
        ("step", pa.int64()),
        ("benchmark", pa.string()),
        ("protocol", pa.string()),
        ("n_problems", pa.int32()),
        ("subset", pa.string()),
        ("k_repeats", pa.int32()),
        ("avg_at_k", pa.float64()),
        ("ci_low", pa.float64()),
        ("ci_high", pa.float64()),
        ("pass_at_k", pa.float64()),
        ("maj_at_k", pa.float64()),
        *[(f"{what}_{end}", pa.float64()) for what in ("pass", "maj") for end in ("low", "high")],
        ("maj_ties", pa.string()),
        ("avg_at_k_completed", pa.float64()),
        ("truncated_rate", pa.float64()),
        ("completion_tokens_mean", pa.float64()),
        ("completion_tokens_max", pa.float64()),
        *[(f"n_{verdict}", pa.int64()) for verdict in VERDICTS],
    ]
)


# Columns that tables of earlier releases do not have; they are null there
ADDED = {
    "subset", "cluster", "phases", "host_memory_gb", "gpu_memory_gb", "gpu_utilisation", "sampled_tokens",
    "trained_tokens", "padding_share", "step_seconds",
}  # fmt: skip


def write(table: pa.Table, schema: pa.Schema, path: Path) -> None:
    """Write a table, whole and on the disk (system.durable).

    Args:
        table: has at least the columns of the schema; others are left out.
        schema: one of the schemas above; columns of ADDED may be missing, and are null then.
        path: of the Parquet file; its folder is created if needed.
    """
    with durable.new(path) as file:
        paths.record_name(path).unlink(missing_ok=True)  # of what was there
        whole = _with_added(table, schema).select(schema.names).cast(schema)
        pq.write_table(whole, file, compression="zstd", write_page_checksum=True)


def read_within_bounds(source: Any, packed: int, name: Path | str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet table of whatever origin, part by part, as far as it is no larger than any of ours.

    Args:
        source: a path, or a file in memory.
        packed: its size in bytes.
        name: for the message.
        columns: those to read; by default all.

    Raises:
        UserError: it has more than MOST_ROWS rows, or unpacks to more than LEAST_BYTES and MOST_RATIO times its size.
        pyarrow.ArrowException: it is damaged.
    """
    most, size, parts = max(LEAST_BYTES, MOST_RATIO * packed), 0, []
    with pq.ParquetFile(source, page_checksum_verification=True) as file:
        rows = file.metadata.num_rows
        schema = file.schema_arrow
        if columns is not None:
            schema = pa.schema([one for one in schema if one.name in columns])
        for part in file.iter_batches(BATCH, columns=columns) if rows <= MOST_ROWS else ():
            size += part.nbytes
            if size > most:
                break
            parts.append(part)
    if rows > MOST_ROWS or size > most:
        raise UserError(
            f"{name} should be a table of completions or problems, but has {rows:,} rows (at least {size:,} bytes "
            f"unpacked), and no more than {MOST_ROWS:,} rows ({most:,} bytes) are read: it is another file, or several "
            "in one; split it",
            code="too-large-table",
            rows=rows,
        )
    if sum(part.num_rows for part in parts) != rows:
        raise pa.ArrowInvalid("it has another number of rows than its head says")
    return pa.Table.from_batches(parts, parts[0].schema if parts else schema)


def read(path: Path, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table and check its columns.

    Args:
        path: a Parquet file.
        schema: one of the schemas above.
        columns: those of its columns to read; by default all.

    Raises:
        UserError: there is no such file, it is not Parquet, its columns are not those of the schema, its record has
            another hash, or it is of another step or benchmark than its path.
    """
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    # What Snakemake makes as one: a file, or all samples or verdicts of a run.
    artefact = next((parent for parent in path.parents if parent.name in ("samples", "graded")), path)
    if not path.is_file():
        instead = "is a folder" if path.is_dir() else "there is no such file"
        raise UserError(
            f"{path} should be a Parquet table, but {instead}; check the path", code="missing-table", path=str(path)
        )
    try:
        table = read_within_bounds(path, path.stat().st_size, path, columns)
        table = _with_added(table, schema)
        missing = [name for name in schema.names if name not in table.column_names]
    except PermissionError:
        raise
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:  # damaged names are not UTF-8
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path} should be a Parquet table but cannot be read ({reason}); delete {artefact} to have it made again",
            code="damaged-table",
            path=str(path),
        ) from None
    if missing:
        raise UserError(
            f"{path} should have the columns {', '.join(missing)} and has not: it is another table (samples before "
            f"grading have no verdict) or from another version; delete {artefact} to have it made again",
            code="other-table",
            missing=missing,
        )
    provenance.check(path)
    _check_place(path)
    return _with_types(table, schema, path, artefact)


def _check_place(path: Path) -> None:
    """Refuse a table of samples in the place of another one's, `step-<n>/<benchmark>.parquet`."""
    try:
        expected = {"step": steps.parse(path.parent.name), "benchmark": path.stem}
    except ValueError:
        return
    with pq.ParquetFile(path) as file:
        columns = [name for name in expected if name in file.schema_arrow.names]
        table = file.read(columns)
    for name in columns:
        if others := set(table[name].unique().to_pylist()) - {expected[name]}:
            raise UserError(
                f"{path} should hold samples of {name} {expected[name]}, as its path says, but holds those of "
                f"{name} {min(others, key=str)}: it is another table in its place; move it back, or delete it to have "
                "it made again",
                code="other-table",
                column=name,
            )


def _with_added(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for name in set(schema.names) & ADDED - set(table.column_names):
        table = table.append_column(name, pa.nulls(len(table), schema.field(name).type))
    return table


def _with_types(table: pa.Table, schema: pa.Schema, path: Path, artefact: Path) -> pa.Table:
    try:
        return table.select(schema.names).cast(schema)
    except pa.ArrowException as error:
        raise UserError(
            f"{path} has columns of another type ({' '.join(str(error).split())[:200]}): it is another table or from "
            f"another version; delete {artefact} to have it made again",
            code="other-table",
        ) from None


def size(path: Path, column: str) -> int:
    """Bytes of a column of a Parquet file that `read` accepts, without its compression."""
    with pq.ParquetFile(path) as file:
        column_index = file.schema_arrow.get_field_index(column)
        groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
        return sum(group.column(column_index).total_uncompressed_size for group in groups)
