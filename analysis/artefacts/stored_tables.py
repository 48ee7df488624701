"""Our own tables (contracts.tables), told apart by their columns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.artefacts.fact import NotThis, listed, percent_text
from contracts import provenance, tables
from eval import statistics
from eval.statistics import clusters

SHOWN = 4  # scores in a line
SAMPLING = ("temperature", "top_p", "max_tokens")


def describe_table(path: Path) -> dict[str, str]:
    """A Parquet file with the columns of one of our tables."""
    if not path.is_file():
        raise NotThis("")
    try:
        names = set(pq.read_schema(path).names)
    except (pa.ArrowException, OSError):
        raise NotThis("no Parquet table") from None
    for schema, describe in DESCRIBERS:
        required = set(schema.names) - getattr(tables, "ADDED", set())
        if required <= names:
            return describe(tables.read(path, schema), path)
    raise NotThis("a Parquet table with other columns than ours")


def _run_and_step(table: pa.Table) -> dict[str, str]:
    values = {name: listed(table[name].unique().to_pylist()) for name in ("run", "step", "benchmark")}
    return {name: value for name, value in values.items() if value}


def _protocol(path: Path, table: pa.Table) -> dict[str, str]:
    """How the samples were asked for: from the record, else the name in the table."""
    record = provenance.read(path)
    sampled = record.get("samples")
    protocol = (sampled if isinstance(sampled, dict) else record).get("protocol")
    name = listed(table["protocol"].unique().to_pylist())
    if not isinstance(protocol, dict):
        return {"protocol": f"{name}; prompt not recorded"}
    settings = ", ".join(f"{key} {protocol[key]}" for key in SAMPLING if key in protocol)
    return {"protocol": f"{name}, prompt {protocol.get('prompt')}, {settings}"}


def _completions(table: pa.Table) -> str:
    problems = len(table["problem_id"].unique())
    return f"{len(table):,} completions of {problems:,} problems × {len(table) / max(problems, 1):g}"


def _graded(table: pa.Table, path: Path) -> dict[str, str]:
    counts = Counter(table["verdict"].to_pylist())
    by_problem: dict[str, list[bool]] = {}
    for problem, verdict in zip(table["problem_id"].to_pylist(), table["verdict"].to_pylist(), strict=True):
        by_problem.setdefault(problem, []).append(verdict == "correct")
    if not by_problem:
        return {"what": "graded samples, none"}
    means = pd.Series({problem: np.mean(right) for problem, right in by_problem.items()}).sort_index()
    shared = clusters.of_rows(table.select(["problem_id", "cluster"]).to_pandas())
    estimate = statistics.mean_over_problems(clusters.linearised(means.to_numpy(), shared))
    rule = provenance.read(path).get("extraction", "not recorded")
    return {
        "what": "graded samples: completions and their verdicts", **_run_and_step(table), **_protocol(path, table),
        "rows": f"{_completions(table)}; {listed(f'{name} {count}' for name, count in counts.most_common())}",
        "numbers": f"{percent_text(estimate.value)} correct [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}] by "
        f"{listed(table['grader'].unique().to_pylist())}, extraction {rule}",
    }  # fmt: skip


def _samples(table: pa.Table, path: Path) -> dict[str, str]:
    reasons = Counter(table["finish_reason"].to_pylist())
    tokens = [count for count in table["completion_tokens"].to_pylist() if count is not None]
    ends = listed(f"{'unknown' if name is None else name} {count}" for name, count in reasons.most_common())
    return {
        "what": "samples: completions, without verdicts", **_run_and_step(table), **_protocol(path, table),
        "rows": _completions(table),
        "numbers": f"ended by {ends}" + (f"; {np.mean(tokens):.0f} tokens on average" if tokens else ""),
    }  # fmt: skip


def score_text(table: pa.Table) -> str:
    """The scores of the last step, in a line."""
    rows = table.to_pylist()
    last = max(row["step"] for row in rows)
    texts = [f"{row['benchmark']} {percent_text(row['avg_at_k'])}" for row in rows if row["step"] == last]
    return f"step {last}: {listed(texts, SHOWN)}"


def _scores(table: pa.Table, path: Path) -> dict[str, str]:
    if not len(table):
        return {"what": "scores, none", "numbers": str(provenance.read(path).get("ended", ""))}
    return {
        "what": "scores of a run, by step and benchmark", **_run_and_step(table),
        "protocol": listed(table["protocol"].unique().to_pylist()), "rows": f"{len(table)} scores",
        "numbers": score_text(table),
    }  # fmt: skip


def log_text(table: pa.Table) -> str:
    """First and last values of a training log, in a line."""
    rows = table.to_pylist()
    if not rows:
        return ""
    changes = [
        f"{name} {rows[0][name]:.3g} → {rows[-1][name]:.3g}"
        for name in ("reward_mean", "accuracy", "response_length_mean", "kl")
        if rows[0][name] is not None and rows[-1][name] is not None
    ]
    return ", ".join(changes)


def _log(table: pa.Table, path: Path) -> dict[str, str]:
    stages = len(table["stage"].unique())
    return {
        "what": "a training log, one row per step", "run": listed(table["run"].unique().to_pylist()),
        "rows": f"{len(table)} steps in {stages} stage{'s' if stages > 1 else ''}", "numbers": log_text(table),
        "made elsewhere": listed(provenance.read(path).get("imported", ())),
    }  # fmt: skip


def _rollouts(table: pa.Table, path: Path) -> dict[str, str]:
    rewards = [reward for reward in table["reward"].to_pylist() if reward is not None]
    return {
        "what": "rollouts: some completions that were trained on", "run": listed(table["run"].unique().to_pylist()),
        "rows": f"{len(table):,} completions of {len(table['step'].unique())} steps",
        "numbers": f"mean reward {np.mean(rewards):.3f}" if rewards else "",
    }  # fmt: skip


def _problems(table: pa.Table, path: Path) -> dict[str, str]:
    first: Any = table.slice(0, 1).to_pylist()[0] if len(table) else {"messages": [{"content": ""}]}
    return {
        "what": f"a problem table ({path.stem})", "task": listed(table["task"].unique().to_pylist()),
        "rows": f"{len(table):,} problems", "question": " ".join(first["messages"][0]["content"].split()),
    }  # fmt: skip


# GRADED has the columns of SAMPLE, so it comes before it
DESCRIBERS = (
    (tables.GRADED, _graded), (tables.SAMPLE, _samples), (tables.SCORE, _scores), (tables.TRAINING_LOG, _log),
    (tables.ROLLOUT, _rollouts), (tables.PROBLEM, _problems),
)  # fmt: skip
