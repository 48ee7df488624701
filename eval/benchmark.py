"""The benchmarks: eval/benchmarks/<name>.yaml, each an lm-eval task over the problem table <data>/<name>.parquet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts import tables
from eval import protocols
from system.errors import UserError
from system.unknown_names import unknown
from system.yaml_files import read_yaml
from tasks import dataset_specs, prompts, task_yaml

BENCHMARKS = Path(__file__).with_name("benchmarks")
TASK_PREFIX = "crosszero_"  # lm-eval has a gsm8k of its own


def names() -> list[str]:
    """All benchmarks."""
    return sorted(file.stem for file in BENCHMARKS.glob("*.yaml"))


def size(name: str) -> int:
    """Problems of a benchmark, as its file says (`metadata.source.rows`)."""
    return int(dataset_specs.find(name).spec["rows"])


def task_of(name: str) -> str:
    """The task of a benchmark's problems, as its file says (`metadata.source.task`)."""
    return str(dataset_specs.find(name).spec["task"])


def default_settings(name: str) -> tuple[str, str]:
    """The protocol and the prompt by which a benchmark is asked where nothing else says how.

    Those of its file, else of its task's; else the task's only prompt, else the protocol's.

    Raises:
        UserError: the task has several prompts and names none.
    """
    task = task_of(name)
    own = (read_yaml(BENCHMARKS / f"{name}.yaml").get("metadata") or {}).get("evaluation") or {}
    stated = task_yaml.settings(task).get("evaluation", {}) | own
    protocol = protocols.load(stated.get("protocol", protocols.DEFAULT))
    prompt = stated.get("prompt")
    if prompt is None and (of_task := [p for p in prompts.prompts_of_task(task) if p != protocol.prompt]):
        if len(of_task) > 1:
            raise UserError(
                f"tasks/{task}/task.yaml has several prompts: say by `evaluation: {{prompt: …}}` which its benchmarks "
                f"are asked with ({', '.join(of_task)})",
                code="undecided-settings", task=task,
            )  # fmt: skip
        prompt = of_task[0]
    return protocol.name, prompts.load(prompt or protocol.prompt).name


def check_names(wanted: Iterable[str]) -> None:
    """Raise UserError for an unknown benchmark, or one whose file lm-eval would ignore without a word."""
    for name in wanted:
        if name not in names():
            raise unknown("benchmark", name, names())
        file = BENCHMARKS / f"{name}.yaml"
        content = read_yaml(file)
        for key, value in {"include": "_base_yaml", "task": TASK_PREFIX + name}.items():
            if content.get(key) != value:
                raise UserError(
                    f"{file} should say `{key}: {value}`, like the files beside it",
                    code="benchmark-without-base",
                    key=key,
                )


def problems(data: Path, benchmark: str) -> pa.Table:
    """The problem table of a benchmark (PROBLEM): at least one problem, and no problem_id twice."""
    path = data / f"{benchmark}.parquet"
    if not path.is_file():
        raise UserError(
            f"the problems of benchmark '{benchmark}' should be in {path}, but there is no such file",
            code="missing-file",
            path=str(path),
        )
    table = tables.read(path, tables.PROBLEM)
    ids = table["problem_id"].to_pylist()
    if not ids or len(set(ids)) != len(ids):
        raise UserError(
            f"{path} should hold each problem once, but holds {len(ids)} rows of {len(set(ids))} problems",
            code="not-one-row-per-problem",
            path=str(path),
        )
    return table


def questions(data: Path, benchmark: str) -> dict[str, str]:
    """The questions of a benchmark by problem_id."""
    return {problem["problem_id"]: question(problem) for problem in problems(data, benchmark).to_pylist()}


def question(problem: Mapping[str, Any]) -> str:
    """The text of a problem's one user message."""
    messages = problem["messages"]
    if len(messages) != 1 or messages[0]["role"] != "user":
        roles = ", ".join(message["role"] for message in messages)
        raise UserError(
            f"problem {problem['problem_id']} should have one user message, but has: {roles or 'none'}",
            code="not-one-message",
            problem=problem["problem_id"],
        )
    return str(messages[0]["content"])


def render(question: str, protocol: protocols.Protocol, tokenizer: Any | None) -> str:
    """The prompt's text for a question, as the model reads it; the same text as in training.

    Args:
        question: as `question` gives it.
        protocol: names the prompt, and says whether the chat template is used.
        tokenizer: the model's; None joins the messages as plain text.
    """
    whole = tokenizer if protocol.needs_chat_template() else None
    return prompts.load(protocol.prompt).render(question, whole, protocol.chat_template_kwargs)


def render_all(questions: Sequence[str], protocol: protocols.Protocol, tokenizer: Any | None) -> list[str]:
    """As `render`, of many questions, with limits (`tasks.prompts.Prompt.render_all`)."""
    whole = tokenizer if protocol.needs_chat_template() else None
    return prompts.load(protocol.prompt).render_all(questions, whole, protocol.chat_template_kwargs)


def documents(table: pa.Table, protocol: protocols.Protocol, grader: str | None = None) -> list[dict[str, Any]]:
    """Problems as lm-eval documents: the question, and what grading needs (eval.grade.grade_benchmark).

    Args:
        table: problems (PROBLEM).
        protocol: says where to look for an answer without a box.
        grader: by default grading's.
    """
    return [
        {
            **{key: problem[key] for key in ("problem_id", "task", "answer", "meta")},
            "question": question(problem),
            "extraction": protocol.extraction,
            "grader": grader,
        }
        for problem in table.to_pylist()
    ]


def problems_hash(data: Path, benchmark: str) -> str:
    """Hash of a benchmark's problems, sorted: what is asked and what decides the verdict, not how a file writes it.

    Neither the benchmark's file nor the Parquet file counts. What puts a prompt around the questions is recorded beside
    this hash: the prompt's words and the chat template.
    """
    rows = sorted(
        json.dumps(problem, sort_keys=True) for problem in problems(data, benchmark).drop("cluster").to_pylist()
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()
