"""Runs in memory for the report's tests, small enough to compute by hand."""

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from analysis.results import RunResults
from contracts import tables
from eval.score import score_row


def graded_row(step: int, problem: str, repeat: int, verdict: str, **more: object) -> dict[str, object]:
    """One completion with everything that the report reads."""
    return {
        "run": "recipe/run/seed-0", "step": step, "benchmark": "sums", "problem_id": problem, "repeat": repeat,
        "prompt": "What is 1 + 1?", "completion": "First, \\boxed{2}", "completion_tokens": 10, "gold": "2",
        "finish_reason": "length" if verdict == "truncated" else "stop", "answer": None, "verdict": verdict,
        "grader": "g", "protocol": "p",
    } | more  # fmt: skip


def log_row(step: int, **more: object) -> dict[str, object]:
    """One step of a training log in which nothing is wrong."""
    return {
        "run": "recipe/run/seed-0", "stage": 1, "step": step, "reward_mean": 0.1 * step, "reward_std": 0.5,
        "accuracy": 0.5, "format_error_rate": 0.1, "wrong_answer_rate": 0.4, "response_length_mean": 20.0,
        "response_length_max": 40.0, "truncated_rate": 0.0, "zero_signal_rate": 0.2,
    } | more  # fmt: skip


def make_run(graded: Sequence[dict[str, object]], log: Sequence[dict[str, object]] | None = None) -> RunResults:
    """A run in memory, scored by the real scorer."""
    completions = pd.DataFrame(graded)
    scores = [score_row(cell) for _, cell in completions.groupby(["step", "benchmark"])]
    steps = [log_row(step) for step in range(1, 11)] if log is None else log
    records = {"training_log.parquet.provenance.json": {"git_commit": "abc", "git_dirty": False},
               "scores.parquet.provenance.json": {"git_commit": "abc", "git_dirty": False}}  # fmt: skip
    frame = pa.Table.from_pylist(list(steps), tables.TRAINING_LOG).to_pandas()
    scored = pa.Table.from_pylist(scores, tables.SCORE).to_pandas()
    return RunResults("recipe/run/seed-0", frame, {}, scored, completions, records)
