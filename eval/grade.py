"""Grade the stored samples of a run, through lm-eval and the replay model: no GPU, no vLLM.

    python -m eval.grade --samples samples --data results/demo/data/benchmarks --output graded [--grader math-verify]

reads samples/step-<n>/<benchmark>.parquet and writes graded/step-<n>/<benchmark>.parquet.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts import provenance, tables
from contracts.errors import UserError, run_command
from eval import benchmark, protocols

ASKED = (
    "protocol", "prompt", "chat_template_sha256", "repeats", "overrides", "seed", "completion_budget", "checkpoint",
    "model_sha256",
)  # fmt: skip


def _only(table: pa.Table, column: str, path: Path) -> Any:
    values = table[column].unique().to_pylist()
    if len(values) != 1:
        raise UserError(f"{path} should have one {column}, and has: {', '.join(map(str, values))}")
    return values[0]


def grade_table(path: Path, data: Path, grader: str | None, fallback: str | None) -> pa.Table:
    """The graded table of a sample table.

    Args:
        path: `<folder>/<benchmark>.parquet`.
        data: folder of the benchmarks' problem tables.
        grader: by default grading's.
        fallback: where to look for an answer that is not boxed, if not where the samples' protocol says.
    """
    from lm_eval.evaluator import evaluate

    from eval.replay import Replay

    samples = tables.read(path, tables.SAMPLE)
    name, protocol = path.stem, _only(samples, "protocol", path)
    benchmark.check_names([name])
    rows = {(row["problem_id"], row["repeat"]): row for row in samples.to_pylist()}
    repeats = max(repeat for _, repeat in rows) + 1
    if len(rows) != len(samples):
        raise UserError(f"{path} has {len(samples)} rows for {len(rows)} samples: each should be there once")
    if protocol not in protocols.names():
        if fallback is None:
            raise UserError(
                f"the samples in {path} were made under '{protocol}', which is no protocol of eval/protocols.yaml: say "
                f"with --fallback where an answer without a box is looked for ({', '.join(protocols.FALLBACKS)})"
            )
        protocol = "report"  # only the fallback matters here: the prompts were asked already
    overrides = {"fallback": fallback} if fallback else {}
    settings = {"protocol": protocol, "overrides": overrides, "repeats": repeats, "grader": grader}
    tasks = benchmark.load_tasks([name], data=str(data), **settings)
    requested = {(doc["problem_id"], repeat) for doc in tasks[name].eval_docs for repeat in range(repeats)}
    if requested != set(rows):
        raise UserError(
            f"{path} should have {len(requested)} samples, {repeats} for each problem of {name}; "
            f"{len(requested - set(rows))} are missing and {len(set(rows) - requested)} are of other problems"
        )
    # Not simple_evaluate, which would read lm-eval's own 13,000 task files for every table.
    results = evaluate(Replay(str(path.parent)), {"tasks": {name: tasks[name]}}, bootstrap_iters=0)
    graded = []
    for logged in results["samples"][name]:
        for repeat, grade in enumerate(logged["filtered_resps"][0]):
            row = rows[logged["doc"]["problem_id"], repeat]
            graded.append({**row, "gold": logged["doc"]["answer"], **grade})
    if len(graded) != len(rows):
        raise UserError(f"{path}: {len(rows)} samples were given and {len(graded)} were graded")
    return pa.Table.from_pylist(graded, tables.GRADED)


def asked(path: Path) -> dict[str, Any]:
    """How the samples of a table were asked for, from their provenance; empty where there is none (imported ones)."""
    file = path.with_name(f"{path.name}.provenance.json")
    record = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return {key: record[key] for key in ASKED if key in record}


def main() -> None:
    """Grade every table below --samples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", required=True, type=Path, help="folder with step-<n>/<benchmark>.parquet")
    parser.add_argument("--data", required=True, type=Path, help="folder of the benchmarks' problem tables")
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--grader", help="by default math-verify, and the task's own verifier where it has one")
    parser.add_argument("--fallback", help="where to look for an answer without a box, if not as the protocol says")
    arguments = parser.parse_args()
    found = sorted(arguments.samples.glob("step-*/*.parquet"))
    if not found:
        raise UserError(f"there are no samples to grade: {arguments.samples} has no step-<n>/<benchmark>.parquet")
    os.environ.update({"TQDM_DISABLE": "1", "LMEVAL_LOG_LEVEL": "WARNING", "HF_HUB_OFFLINE": "1"})
    from eval.vllm_worker import quiet

    quiet()
    started, count = time.monotonic(), 0
    for path in found:
        graded = grade_table(path, arguments.data, arguments.grader, arguments.fallback)
        output = arguments.output / path.relative_to(arguments.samples)
        tables.write(graded, tables.GRADED, output)
        verdicts = Counter(graded["verdict"].to_pylist())
        fallback = arguments.fallback or protocols.load(_only(graded, "protocol", path)).fallback
        provenance.write(
            output,
            samples=asked(path),
            samples_sha256=provenance.sha256(path),
            task_sha256=benchmark.task_hash(arguments.data, path.stem),
            grader=_only(graded, "grader", output),
            fallback=fallback,
            delivered=len(graded),
            graded=len(graded),
            verdicts=dict(sorted(verdicts.items())),
        )
        count += len(graded)
    seconds = time.monotonic() - started
    print(f"grade: {count} samples in {len(found)} tables, {count / seconds:.0f}/s", file=sys.stderr)


if __name__ == "__main__":
    run_command(main)
