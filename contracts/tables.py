"""The tables that pass from one stage to the next, as Arrow schemas in Parquet files.

problem → (train) → training log, (generate) → sample → (grade) → graded sample → (score) → score

`run` is a run's id, `<recipe>/<run>/seed-<n>` (contracts.seeds), in all tables.
Lengths are in tokens, times in seconds, rates and accuracies are fractions from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from system import durable
from system.errors import UserError

MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))

PROBLEM = pa.schema(
    [
        ("problem_id", pa.string()),
        ("task", pa.string()),  # math, arithmetic, countdown, …: which verifier applies
        ("messages", MESSAGES),  # the question alone; the run's or the protocol's prompt is added later
        ("answer", pa.string()),
        ("meta", pa.string()),  # JSON: level, subject, and what the verifier needs besides the answer
    ]
)

# Of each reward of a run with several: the share of completions to which it gave another value than 0, and its mean
# before it is weighed, both over the completions that it gave any value.
REWARDS = pa.list_(pa.struct([("name", pa.string()), ("fired", pa.float64()), ("mean", pa.float64())]))

TRAINING_LOG = pa.schema(
    [
        ("run", pa.string()),
        ("stage", pa.int32()),
        ("step", pa.int64()),
        ("wall_time", pa.float64()),  # seconds since the stage first started, without the time between restarts
        ("reward_mean", pa.float64()),
        ("reward_std", pa.float64()),  # over all completions of the step
        ("accuracy", pa.float64()),
        ("format_error_rate", pa.float64()),
        ("wrong_answer_rate", pa.float64()),  # a well-formed completion with a wrong answer
        ("response_length_mean", pa.float64()),
        ("response_length_max", pa.float64()),
        ("truncated_rate", pa.float64()),
        ("kl", pa.float64()),
        ("entropy", pa.float64()),
        ("grad_norm", pa.float64()),
        ("learning_rate", pa.float64()),
        ("zero_signal_rate", pa.float64()),  # share of groups whose rewards are all equal
        ("tokens_per_second", pa.float64()),
        # How far the sampler's probabilities are from the trainer's, mean over tokens: TRL |Δ log p|, verl |Δ p|,
        # OpenRLHF Δ log p. Null without vLLM, and in TRL and OpenRLHF without `sampler_correction`.
        ("sampler_mismatch", pa.float64()),
        ("rewards", REWARDS),  # null where they were not recorded one by one
    ]
)

ROLLOUT = pa.schema(  # completions that were trained on; not all of a step, see ROLLOUTS_PER_STEP
    [
        ("run", pa.string()),
        ("stage", pa.int32()),
        ("step", pa.int64()),
        ("problem_id", pa.string()),  # null where the framework does not report it
        ("prompt", pa.string()),  # as the model saw it
        ("completion", pa.string()),  # what the model added; the prompt may contain the beginning of its turn
        ("reward", pa.float64()),
        ("verdict", pa.string()),  # one of VERDICTS; null where no reward verifies the answer
        ("completion_tokens", pa.int32()),  # of its text, by the model's tokenizer
    ]
)

ROLLOUTS_PER_STEP = 64  # whole groups, in the order of their problems

SAMPLE = pa.schema(
    [
        ("run", pa.string()),
        ("step", pa.int64()),
        ("benchmark", pa.string()),
        ("problem_id", pa.string()),
        ("repeat", pa.int32()),  # 0 … k-1
        ("seed", pa.int64()),  # the sampling seed of this completion alone; null if unknown
        ("prompt", pa.string()),  # as the model saw it
        ("completion", pa.string()),
        ("finish_reason", pa.string()),  # stop, length, prompt_too_long; null if unknown (imported)
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("gold", pa.string()),
        ("protocol", pa.string()),
    ]
)

GRADED = pa.schema(
    [
        *SAMPLE,
        ("answer", pa.string()),  # what was extracted from the completion; null if nothing was
        ("verdict", pa.string()),  # one of VERDICTS
        ("grader", pa.string()),  # name and version
    ]
)

VERDICTS = ("correct", "wrong", "no_answer", "truncated", "format_error", "ungradable")

SCORE = pa.schema(
    [
        ("run", pa.string()),
        ("step", pa.int64()),
        ("benchmark", pa.string()),
        ("protocol", pa.string()),
        ("n_problems", pa.int32()),
        ("subset", pa.string()),  # which part of the benchmark: `first 50 of 1319`; null if it is whole
        ("k_repeats", pa.int32()),
        ("avg_at_k", pa.float64()),
        ("ci_low", pa.float64()),  # 95 % interval, clustered by problem
        ("ci_high", pa.float64()),
        ("pass_at_k", pa.float64()),
        ("maj_at_k", pa.float64()),
        *[(f"{what}_{end}", pa.float64()) for what in ("pass", "maj") for end in ("low", "high")],  # their intervals
        ("maj_ties", pa.string()),  # what became of ties (eval.statistics.TIES)
        ("avg_at_k_completed", pa.float64()),  # over completions that were not truncated; null if all were
        ("truncated_rate", pa.float64()),
        ("completion_tokens_mean", pa.float64()),
        ("completion_tokens_max", pa.float64()),
        *[(f"n_{verdict}", pa.int64()) for verdict in VERDICTS],
    ]
)


ADDED = {"subset"}  # columns that tables of earlier releases do not have; they are null there


def write(table: pa.Table, schema: pa.Schema, path: Path) -> None:
    """Write a table, whole and on the disk (system.durable).

    Args:
        table: has at least the columns of the schema; others are left out.
        schema: one of the schemas above.
        path: of the Parquet file; its folder is created if needed.
    """
    with durable.new(path) as file:
        pq.write_table(table.select(schema.names).cast(schema), file, compression="zstd", write_page_checksum=True)


def read(path: Path, schema: pa.Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table and check its columns.

    Args:
        path: a Parquet file.
        schema: one of the schemas above.
        columns: those of its columns to read; by default all.

    Raises:
        UserError: there is no such file, it is not Parquet, or its columns are not those of the schema.
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
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read(columns)
        for name in set(schema.names) & ADDED - set(table.column_names):
            table = table.append_column(name, pa.nulls(len(table), schema.field(name).type))
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
    return _with_types(table, schema, path, artefact)


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
