"""Stored runs as a world says that they are: with several seeds, and enough completions to decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.results import RunResults

CODE, MISTAKE = "```python", "Wait, I made a mistake. "
SEEDS, SEEDS_OF_LOGS, PROBLEMS, REPEATS = 4, 32, 160, 6
VERDICTS = ("correct", "truncated", "format_error", "no_answer")
OFFSETS = (np.random.default_rng(0).permutation(PROBLEMS) + 0.5) / PROBLEMS  # the same rounding in all worlds
Integers = npt.NDArray[np.int64]
Curve = float | Mapping[int, float]
Run = Mapping[
    str, Any
]  # of completions, by what is measured: a curve, or one by benchmark; of the log: {column: curve}


def value(curve: Curve, step: int) -> float:
    """A curve at a step."""
    if not isinstance(curve, Mapping):
        return float(curve)
    return float(np.interp(step, list(curve), list(curve.values())))


def _counts(of_all: Any, share: float, random: np.random.Generator) -> Integers:
    """How many of each problem's repeats, or of so many, have what this share has. Few differ by chance."""
    luck = random.choice([-1, 0, 1], PROBLEMS, p=[0.0025, 0.995, 0.0025]) * (0.01 < share < 0.99)
    return np.clip(np.floor(share * of_all + OFFSETS) + luck, 0, of_all).astype(int)


def _marked(share: float, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Whether each completion has it, of shape (problems × repeats,); the first repeats of each problem have."""
    return (np.arange(REPEATS)[None, :] < _counts(REPEATS, share, random)[:, None]).ravel()


def _of_benchmark(run: Run, what: str, step: int, benchmark: str, default: float = 0.0) -> float:
    curve = run.get(what, default)
    if isinstance(curve, Mapping) and benchmark in curve:
        curve = curve[benchmark]
    return value(curve, step)


def _completions(run: Run, step: int, benchmark: str, random: np.random.Generator) -> pd.DataFrame:
    count = PROBLEMS * REPEATS

    def at(what: str, default: float = 0.0) -> float:
        return _of_benchmark(run, what, step, benchmark, default)

    position = np.arange(REPEATS)[None, :]
    verdicts, cut = np.full(count, "wrong", dtype=object), np.zeros((PROBLEMS, 1), dtype=int)
    for name in VERDICTS:  # one after the other of each problem's repeats
        upper = cut + _counts(REPEATS, at(name), random)[:, None]
        verdicts[((position >= cut) & (position < upper)).ravel()] = name
        cut = upper
    texts = np.full(count, "", dtype=object)
    for name, phrase in (
        ("step_by_step", "First, "),
        ("reflection", "let me try again "),
        ("code", CODE),
        ("mistake", MISTAKE),
    ):
        texts = np.where(_marked(at(name), random), texts + phrase, texts)
    tokens = at("tokens", 100.0) * (1 + 0.01 * random.standard_normal(count))
    if "thinking_tokens" in run:
        thinking, answer = at("thinking_tokens"), at("answer_tokens")
        texts = np.full(count, "a" * round(10 * thinking) + "</think>" + "b" * round(10 * answer), dtype=object)
        tokens = (thinking + answer) * (1 + 0.01 * random.standard_normal(count))
    start = np.zeros((PROBLEMS, 1), dtype=int)
    for (low, high), curve in run.get("ranges", {}).items():
        end = start + _counts(REPEATS, value(curve, step), random)[:, None]
        tokens = np.where(((position >= start) & (position < end)).ravel(), (low + high) / 2, tokens)
        start = end
    why = np.where(_marked(at("leads"), random), "leads from", "")
    why = np.where(_marked(1 - at("obstacle"), random), why, "obstacle")
    right_answers = (verdicts == "correct").reshape(PROBLEMS, -1)
    rightly = _counts(right_answers.sum(axis=1), at("right_reasons"), random)[:, None]
    reasons = np.where((np.cumsum(right_answers, axis=1) <= rightly).ravel(), "_right", "_wrong")
    kinds = np.where(verdicts == "correct", "right", "wrong").astype(object) + reasons
    problems = np.repeat([f"{i:02d}" for i in range(PROBLEMS)], REPEATS)
    return pd.DataFrame(
        {
            "step": step, "benchmark": benchmark, "problem_id": problems,
            "repeat": np.tile(np.arange(REPEATS), PROBLEMS), "prompt": "p", "completion": texts,
            "completion_tokens": tokens, "gold": "1", "verdict": verdicts, "grader": "g", "protocol": "p",
            "kind": kinds, "why": why, "checkable": round(at("calculations", 1.0)),
        }
    )  # fmt: skip


def _training_log(run: Run, last: int, random: np.random.Generator) -> pd.DataFrame:
    steps = np.arange(1, last + 1)
    columns = {}
    for name, curve in run.get("log", {}).items():
        level = np.array([value(curve, int(step)) for step in steps])
        swings = np.array([value(run.get("swing", 0.01), int(step)) for step in steps])
        columns[name] = level * (1 + swings * random.standard_normal(last)) * (1 + 0.002 * random.standard_normal())
    return pd.DataFrame({"step": steps, **columns})


def stored_runs(
    world: Mapping[str, Run], steps: Mapping[str, Sequence[int]], last: Mapping[str, int], benchmarks: Sequence[str]
) -> Iterator[RunResults]:
    """Plant a world.

    Args:
        world: the runs.
        steps: of each, its checkpoints.
        last: of each, the last training step.
        benchmarks: those of all runs.
    """
    for position, (name, run) in enumerate(world.items()):
        for seed in range(SEEDS if steps[name] else SEEDS_OF_LOGS):
            random = np.random.default_rng([position, seed])
            cells = [(step, benchmark) for step in steps[name] for benchmark in benchmarks]
            graded = [_completions(run, step, benchmark, random) for step, benchmark in cells]
            scores = pd.DataFrame(cells, columns=["step", "benchmark"]).assign(truncated_rate=0.0)
            yield RunResults(
                f"{name}/seed-{seed}", _training_log(run, last[name], random), {}, scores,
                pd.concat(graded, ignore_index=True) if graded else pd.DataFrame(columns=["step", "benchmark"]), {},
            )  # fmt: skip
