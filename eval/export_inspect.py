"""Write graded samples as logs of inspect_ai, which `inspect view` shows.

crosszero export-inspect --graded results/demo/runs/openr1/qwen2.5-math-7b/seed-0/graded --output inspect_logs

One JSON log for each checkpoint and benchmark; a repeat is an epoch. (lm-eval's own tools read the stored samples, too:
docs/how-to/judge.md.) Of imported samples, whose prompt is not known, the question is the input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contracts import paths, provenance, steps, tables
from contracts.paths import RunFolder
from eval import benchmark
from eval.importers.import_samples import source_file
from system import durable, json_lines
from system.command_line import argument_parser
from system.errors import UserError, run_command

STOPS = {"stop": "stop", "length": "max_tokens", "prompt_too_long": "model_length"}
Row = dict[str, Any]


def questions_of(graded: Path) -> dict[str, str]:
    """The questions of a table's problems by problem_id, for samples whose prompt is not known; {} if they are nowhere.

    From the run's own problems/, the problem tables of the results, or what was imported beside the samples.

    Args:
        graded: `…/runs/<run>/graded/step-<n>/<benchmark>.parquet`.
    """
    run = graded.parents[2]
    folders = [run / "problems", *(parent / "data" / "benchmarks" for parent in run.parents)]
    if table := next((folder for folder in folders if (folder / graded.name).is_file()), None):
        return benchmark.questions(table, graded.stem)
    source = source_file(paths.table(RunFolder(run).samples, steps.parse(graded.parent.name), graded.stem))
    rows = json_lines.read(source) if source.is_file() else iter(())
    return {row["problem_id"]: row["question"] for row in rows if row.get("question")}


def with_questions(graded: Path) -> list[Row]:
    """The rows of a graded table; the question stands for a prompt that is not known."""
    rows: list[Row] = tables.read(graded, tables.GRADED).to_pylist()
    if all(row["prompt"] for row in rows):
        return rows
    questions = questions_of(graded)
    rows = [row | {"prompt": row["prompt"] or questions.get(row["problem_id"])} for row in rows]
    if lost := sum(not row["prompt"] for row in rows):
        print(f"{graded}: neither prompt nor question of {lost} samples is known: they have no input", file=sys.stderr)
    return rows


def _sample(row: Row, model: str) -> Row:
    """A sample as inspect_ai writes it."""
    choice = {
        "message": {"role": "assistant", "content": row["completion"], "source": "generate", "model": model},
        "stop_reason": STOPS.get(row["finish_reason"], "unknown"),
    }
    tokens = [row["prompt_tokens"], row["completion_tokens"]]
    usage = dict(zip(("input_tokens", "output_tokens"), tokens, strict=True)) if None not in tokens else {}
    right = "C" if row["verdict"] == "correct" else "I"
    score = {
        "value": right,
        "answer": row["answer"],
        "explanation": row["verdict"],
        "metadata": {"grader": row["grader"]},
    }
    return {
        "id": row["problem_id"],
        "epoch": row["repeat"] + 1,
        "input": row["prompt"] or "",
        "target": row["gold"] or "",
        "messages": [{"role": "user", "content": row["prompt"] or "", "source": "input"}, choice["message"]],
        "output": {"model": model, "choices": [choice], "completion": row["completion"]}
        | ({"usage": usage | {"total_tokens": sum(tokens)}} if usage else {}),
        "scores": {"verdict": score},
        "metadata": {"finish_reason": row["finish_reason"], "seed": row["seed"]},
    }


def log(rows: Sequence[Row], created: str) -> Row:
    """The log of one checkpoint and benchmark.

    Args:
        rows: of contracts.tables.GRADED, all of them.
        created: when they were graded, in ISO 8601.
    """
    first, ids = rows[0], list(dict.fromkeys(row["problem_id"] for row in rows))
    model, repeats = f"{first['run']}/step-{first['step']}", max(row["repeat"] for row in rows) + 1
    accuracy = sum(row["verdict"] == "correct" for row in rows) / len(rows)
    metric = {"accuracy": {"name": "accuracy", "value": accuracy, "params": {}}}
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "created": created,
            "task": first["benchmark"],
            "task_args": {"protocol": first["protocol"]},
            "dataset": {"name": first["benchmark"], "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": model,
            "config": {"epochs": repeats},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "stats": {"started_at": created, "completed_at": created},
        "results": {
            "total_samples": len(rows),
            "completed_samples": len(rows),
            "scores": [{"name": "verdict", "scorer": "verdict", "params": {}, "metrics": metric}],
        },
        "samples": [_sample(row, model) for row in rows],
    }


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--graded", type=Path, required=True, help="the folder `graded` of a run")
    parser.add_argument("--output", type=Path, required=True, help="folder for the logs")
    arguments = parser.parse_args()
    files = paths.tables(arguments.graded)
    if not files:
        raise UserError(
            f"{arguments.graded} should have graded samples in step-<n>/<benchmark>.parquet, but has none",
            code="no-samples",
            path=str(arguments.graded),
        )
    for file in files:
        rows = with_questions(file)
        created = str(provenance.read(file).get("made_at") or datetime.now(UTC).isoformat(timespec="seconds"))
        # inspect_ai lists only files whose names begin with a time; no two of these have the same name
        name = f"{created.replace(':', '-').replace('+', '-')}_{file.stem}_{file.parent.name}.json"
        durable.write_text(arguments.output / name, json.dumps(log(rows, created)))
    print(f"{len(files)} logs written to {arguments.output}: inspect view --log-dir {arguments.output}")


if __name__ == "__main__":
    run_command(main)
