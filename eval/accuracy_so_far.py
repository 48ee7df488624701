"""Held-out accuracy of the checkpoints that are graded so far, for views of runs that are not finished."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contracts import paths, steps


def read(graded: Path) -> dict[int, float]:
    """By step, the mean over benchmarks of the share of correct completions; what cannot be read is left out.

    Args:
        graded: the folder of a run's graded tables.
    """
    shares: dict[int, list[float]] = {}
    for file in paths.tables(graded):
        try:
            verdicts = pq.read_table(file, columns=["verdict"])["verdict"]
        except (pa.ArrowException, OSError):  # being written
            continue
        if len(verdicts):
            right = pc.sum(pc.equal(verdicts, "correct")).as_py()
            shares.setdefault(steps.parse(file.parent.name), []).append(right / len(verdicts))
    return {step: sum(values) / len(values) for step, values in sorted(shares.items())}


def summary(run_id: str, accuracy: dict[int, float]) -> str:
    """The first and the newest for readers, such as `20.1 → 77.0 % (step 20)`; empty if there is none.

    Args:
        run_id: what was evaluated; a model that was evaluated by itself has no steps to name.
        accuracy: by step, as `read` gives it.
    """
    if not accuracy:
        return ""
    first, last = min(accuracy), max(accuracy)
    newest = f"{100 * accuracy[last]:.1f} %"
    if not run_id.startswith(paths.MODELS):
        newest += f" ({f'step {last}' if last else 'base model'})"
    return newest if first == last else f"{100 * accuracy[first]:.1f} → {newest}"
