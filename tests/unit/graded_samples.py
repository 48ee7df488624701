"""Graded samples that tests make: tables of right and wrong, folders of them, and the command that reads these."""

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.compare_checkpoints import graded_checkpoint
from contracts import tables
from tests.forked_command import run_module

ACCEPTED = ("prompt", "protocol", "grader")


def graded(correct, benchmark="questions", **columns):
    """A table of graded samples from (problems, repeats) of right and wrong."""
    rows = []
    for problem, row in enumerate(correct):
        for repeat, right in enumerate(row):
            rows.append(
                dict.fromkeys(tables.GRADED.names)
                | {"run": "r", "step": 0, "benchmark": benchmark, "problem_id": f"p{problem:04}", "repeat": repeat}
                | {"prompt": f"question {problem}", "completion": f"</script> {problem} \\boxed{{{int(right)}}}"}
                | {"finish_reason": "stop", "completion_tokens": 10 + repeat, "gold": "1", "protocol": "greedy-boxed"}
                | {"verdict": "correct" if right else "wrong", "grader": "math-verify 1", "answer": str(int(right))}
                | columns
            )
    return pd.DataFrame(rows)


def save(folder, *frames):
    folder.mkdir(parents=True, exist_ok=True)
    for frame in frames:
        path = folder / f"{frame['benchmark'].iloc[0]}.parquet"
        tables.write(pa.Table.from_pandas(frame, schema=tables.GRADED, preserve_index=False), tables.GRADED, path)
    return folder


def sample(n, k, accuracy, seed):
    return np.random.default_rng(seed).random((n, k)) < accuracy


def read(tmp_path, name, *frames):
    return graded_checkpoint.read(save(tmp_path / name, *frames), name)


def process(*arguments, module="analysis.compare_checkpoints"):
    done = run_module(module, *arguments)
    return done.returncode, done.stdout + done.stderr


def folders(tmp_path, name, seeds, chance, steps=(0, 10)):
    runs = [tmp_path / name / f"seed-{seed}" / "graded" for seed in range(seeds)]
    for seed, folder in enumerate(runs):
        for step in steps:
            save(folder / f"step-{step}", graded(sample(60, 4, chance, 100 * seed + step), step=step))
    return runs
