"""The benchmarks: eval/benchmarks/<name>.yaml, each an lm-eval task over the problem table <data>/<name>.parquet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import yaml

from contracts import tables
from contracts.errors import UserError
from eval import protocols

if TYPE_CHECKING:
    from eval.benchmark_task import BenchmarkTask

BENCHMARKS = Path(__file__).with_name("benchmarks")
TASK_PREFIX = "crosszero_"  # so that our gsm8k is not taken for lm-eval's


def names() -> list[str]:
    """The benchmarks that there are."""
    return sorted(file.stem for file in BENCHMARKS.glob("*.yaml"))


def check_names(wanted: Iterable[str]) -> None:
    """Raise UserError for a benchmark that there is not, or whose file lm-eval would pass over in silence."""
    for name in wanted:
        if name not in names():
            raise UserError(f"there is no benchmark '{name}' in eval/benchmarks; there are: {', '.join(names())}")
        file = BENCHMARKS / f"{name}.yaml"
        try:
            content = yaml.load(
                file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader
            )  # which takes any !tag as text
        except yaml.YAMLError as error:
            raise UserError(f"{file} should be YAML and is not: {' '.join(str(error).split())}") from None
        for key, value in {"include": "_base_yaml", "task": TASK_PREFIX + name}.items():
            if not isinstance(content, dict) or content.get(key) != value:
                raise UserError(f"{file} should say `{key}: {value}`, like the files beside it")


def size(name: str) -> int:
    """Number of problems of a benchmark, as its file states them (metadata.source.rows)."""
    check_names([name])
    content = yaml.load((BENCHMARKS / f"{name}.yaml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    return int(content["metadata"]["source"]["rows"])


def problems(data: Path, benchmark: str) -> pa.Table:
    """The problem table of a benchmark, checked: its columns, at least one problem, no problem_id twice."""
    path = data / f"{benchmark}.parquet"
    if not path.is_file():
        raise UserError(f"the problems of benchmark '{benchmark}' should be in {path}, which is not there")
    table = tables.read(path, tables.PROBLEM)
    ids = table["problem_id"].to_pylist()
    if not ids or len(set(ids)) != len(ids):
        raise UserError(f"{path} should hold each problem once, and holds {len(ids)} rows of {len(set(ids))} problems")
    return table


def question(problem: Mapping[str, Any]) -> str:
    """The text of a problem's only message."""
    messages = problem["messages"]
    if len(messages) != 1 or messages[0]["role"] != "user":
        roles = ", ".join(message["role"] for message in messages)
        raise UserError(f"problem {problem['problem_id']} should have one user message, and has: {roles or 'none'}")
    return messages[0]["content"]


def documents(table: pa.Table, protocol: protocols.Protocol, **judging: Any) -> list[dict[str, Any]]:
    """Problems as lm-eval documents: the question, and what the judge has to know."""
    return [
        {
            **{key: problem[key] for key in ("problem_id", "task", "answer", "meta")},
            "question": question(problem),
            "fallback": protocol.fallback,
            **judging,
        }
        for problem in table.to_pylist()
    ]


def task_hash(data: Path, benchmark: str) -> str:
    """Hash of a benchmark's definition and problems (not of the Parquet file, whose bytes depend on its writer)."""
    digest = hashlib.sha256()
    for file in (BENCHMARKS / "_base_yaml", BENCHMARKS / f"{benchmark}.yaml"):
        digest.update(file.read_bytes())
    for problem in problems(data, benchmark).to_pylist():
        digest.update(json.dumps(problem, sort_keys=True).encode())
    return digest.hexdigest()


def load_tasks(benchmarks: Iterable[str], **metadata: Any) -> dict[str, BenchmarkTask]:
    """lm-eval tasks by benchmark name; the metadata is described at eval.benchmark_task.BenchmarkTask."""
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(BENCHMARKS), include_defaults=False, metadata=metadata)
    wanted = list(benchmarks)
    tasks = manager.load([TASK_PREFIX + name for name in wanted])["tasks"]
    return {name: tasks[TASK_PREFIX + name] for name in wanted}
