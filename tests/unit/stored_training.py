"""A training as its results are stored, for tests of what it cost."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa

from analysis.benchmark import trainings
from analysis.benchmark.trainings import Training
from contracts import provenance, tables
from contracts.paths import ResultsFolder
from contracts.seeds import run_id
from recipes.runs import load_run

RUN = "crosscheck/trl"


STEPS = 4


COMPLETIONS = 16 * 8  # of the run at demo scale


def store(
    results: Path, run: str, seed: int, speed: float = 1.0, without_phases: Collection[int] = (),
    starts: Collection[int] = (1,), ends: Collection[int] = (STEPS,), stages: Sequence[int] = (1,) * STEPS,
    scale: str = "demo", **record: object,
) -> None:  # fmt: skip
    """A training of four steps with checkpoints at 2 and 4, whose every step takes 10 / speed seconds."""
    folder, name = ResultsFolder(results).run(run_id(run, seed)), run_id(run, seed)
    rows = []
    for step in range(1, STEPS + 1):
        times = [("start-up", 20.0)] if step in starts else []
        times += [("sampling", 6 / speed), ("update", 3 / speed), ("rest", 1 / speed)]
        times += [("end", 5.0)] if step in ends else []
        own = [{"name": phase, "seconds": seconds} for phase, seconds in times]
        known = {
            "wall_time": 10 * step / speed,
            "step_seconds": 10 / speed,
            "response_length_mean": 30.0,
            "phases": None if step in without_phases else own,
            "host_memory_gb": 2.0 + step,
        }
        rows.append(
            dict.fromkeys(tables.TRAINING_LOG.names) | {"run": name, "stage": stages[step - 1], "step": step} | known
        )
    table = pa.Table.from_pylist(rows, tables.TRAINING_LOG)
    for file in (folder.training_log, folder.stage(1) / "training_log.parquet"):
        tables.write(table, tables.TRAINING_LOG, file)
        provenance.write(file, machine="2 cores of it, 8 GB", **record)
    evaluation = load_run(run, scale).evaluation
    easier = [0.1 * (-1) ** number for number in range(len(evaluation["benchmarks"]) // 2 * 2)] + [0.0]
    scores = [
        dict.fromkeys(tables.SCORE.names)
        | {"run": name, "step": step, "protocol": evaluation["protocol"], "benchmark": benchmark}
        | {"avg_at_k": accuracy + more}
        for step, accuracy in ((0, 0.1), (2, 0.3), (4, 0.7))
        for benchmark, more in zip(evaluation["benchmarks"], easier, strict=False)
    ]
    tables.write(pa.Table.from_pylist(scores, tables.SCORE), tables.SCORE, folder.scores)
    provenance.write(folder.scores)


def read(results: Path, run: str = RUN, seed: int = 0, scale: str = "demo") -> Training:
    (one,) = trainings.read_trainings(results, [run], [seed], scale)
    return one
