"""The sample browser: a page, an index of all samples, and their texts in compressed chunks beside it.

It opens from a disk without a server. The chunks are script files because a page from a disk may not fetch. Texts reach
the page only as data and are shown as text. The index has columns of numbers, and a chunk one long text, which workers
unpack and search: a million completions can be filtered and searched.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis import hash_order
from analysis.measures.reasoning_patterns import PatternList
from analysis.pages import page
from analysis.results import RunResults
from contracts.steps import folder as step_folder
from system.text_safety import clipped
from tasks import registry

MAX_SAMPLES = 1_000_000  # if there are more, whole problems are left out in the order of a hash of their names
CHUNK = 2_000_000  # characters of text in a chunk
MAX_TEXT = 40_000  # characters of a completion
Column = npt.NDArray[Any]
WRAPPED = re.compile(r"\(\?([im]+):(.*)\)", re.DOTALL)


def _in_javascript(regex: str) -> tuple[str, str]:
    """An expression and its flags, because not every browser supports flags inside an expression."""
    wrapped = WRAPPED.fullmatch(regex)
    return (wrapped[2], wrapped[1]) if wrapped else (regex, "")


def _shown_problems(runs: Sequence[RunResults], most: int) -> dict[str, list[str]]:
    """The problems of each benchmark that are shown. Only whole problems, as many as fit."""
    samples = pd.concat([run.graded[["benchmark", "problem_id"]] for run in runs])
    sizes = samples.groupby(["benchmark", "problem_id"]).size()
    if len(samples) > most:
        ordered = sizes.iloc[np.argsort([hash_order.key(*names) for names in sizes.index])]
        sizes = ordered[ordered.cumsum() <= most]
    return {str(name): inside.tolist() for name, inside in sizes.reset_index().groupby("benchmark")["problem_id"]}


def _chosen(runs: Sequence[RunResults], most: int) -> pd.DataFrame:
    """The samples of all runs that are shown, grouped by problem."""
    problems, parts = _shown_problems(runs, most), []
    for number, run in enumerate(runs):
        for step, benchmark in run.cells:
            is_shown = run.rows(step, benchmark)["problem_id"].isin(problems.get(benchmark, []))
            parts.append(run.samples(step, benchmark, is_shown).assign(run=number))
    samples = pd.concat(parts, ignore_index=True)
    return samples.sort_values(["benchmark", "problem_id", "run", "step", "repeat"], ignore_index=True)


def _pack(head: dict[str, Any], body: bytes) -> str:
    """A line of JSON and the bytes after it, compressed at level 1, which takes a third of the usual time."""
    return base64.b64encode(gzip.compress(json.dumps(head).encode() + b"\n" + body, 1, mtime=0)).decode()


def _codes(values: pd.Series) -> tuple[Column, list[str]]:
    codes, names = pd.factorize(values.fillna("unknown"))
    return codes, [str(name) for name in names]


def _texts(values: pd.Series) -> list[str | None]:
    return [None if value is None or pd.isna(value) else str(value) for value in values.astype(object)]


def _chunks(sizes: Column, problem: Column) -> list[int]:
    """The first row of each chunk. The completions of a problem are in one chunk, so that opening it needs one file.

    Args:
        sizes: characters of each completion.
        problem: the number of each completion's problem.
    """
    first, before = [0], 0
    ends = np.cumsum(sizes)
    for row in np.flatnonzero(np.diff(problem)) + 1:  # where a problem begins
        if ends[row - 1] - before > CHUNK:
            first.append(int(row))
            before = ends[row - 1]
    return first


def _index(runs: Sequence[RunResults], samples: pd.DataFrame, problem: Column, first: list[int]) -> str:
    """The index of all samples: names, and columns of numbers that stand for them, one number per sample."""
    steps = sorted(samples["step"].unique().tolist())
    verdict, verdicts = _codes(samples["verdict"])
    finish, finishes = _codes(samples["finish_reason"])
    answer, answers = pd.factorize(samples["answer"])  # -1: none
    firsts = samples.iloc[np.unique(problem, return_index=True)[1]]  # one sample of each problem
    benchmark, benchmarks = _codes(firsts["benchmark"])
    columns = {
        "problem": problem.astype("<u4"),
        "repeat": samples["repeat"].to_numpy("<u4"),
        "length": samples["completion_tokens"].fillna(-1).to_numpy("<i4"),
        "answer": (answer + 1).astype("<u4"),
        "run": samples["run"].to_numpy("<u2"),
        "step": np.searchsorted(steps, samples["step"]).astype("<u2"),
        "verdict": verdict.astype("u1"),
        "finish": finish.astype("u1"),
    }
    names = {
        "rows": len(samples),
        "columns": [[name, values.dtype.str.lstrip("<|")] for name, values in columns.items()],
        "runs": [run.name for run in runs],
        "titles": {run.name: run.display_name for run in runs},
        "trained": [run.trained for run in runs],
        "steps": steps,
        "verdicts": verdicts,
        "finishes": finishes,
        "answers": [None, *(clipped(str(text), 200) for text in answers.tolist())],
        "benchmarks": benchmarks,
        "benchmark": benchmark.tolist(),
        "problems": [clipped(str(name), 200) for name in firsts["problem_id"].tolist()],
        "golds": [None if gold is None else clipped(gold, 300) for gold in _texts(firsts["gold"])],
        "labels": {f"{i} {step}": run.label(step) for i, run in enumerate(runs) for step in run.steps},
        "files": {
            f"{i} {step} {benchmarks.index(name)}": f"runs/{run.name}/graded/{step_folder(step)}/{name}.parquet"
            for i, run in enumerate(runs)
            for step in run.steps
            for name in run.benchmarks
            if name in benchmarks
        },
        "first": first,
    }
    return _pack(names, b"".join(values.tobytes() for values in columns.values()))


def _drawn(runs: Sequence[RunResults]) -> set[str]:
    """The benchmarks whose answers have pictures."""
    return {
        name
        for run in runs
        for name, problems in run.problem_rows.items()
        if any(registry.get(problem.task).picture_module() for problem in list(problems.values())[:1])
    }


def _pictures(runs: Sequence[RunResults], samples: pd.DataFrame) -> dict[str, Any]:
    """Pictures of the answers in some samples, each picture once, and which of them each sample has (-1: none).

    Args:
        runs: the samples' column `run` counts them.
        samples: of one chunk.
    """
    pictures: dict[str, int] = {}
    places = []
    for row in samples[["run", "benchmark", "problem_id", "answer"]].to_dict("records"):
        problem = runs[row["run"]].problem_rows.get(row["benchmark"], {}).get(row["problem_id"])
        has_answer = problem is not None and not pd.isna(row["answer"])
        drawn = registry.get(problem.task).picture(str(row["answer"]), problem) if problem and has_answer else None
        places.append(-1 if drawn is None else pictures.setdefault(drawn, len(pictures)))
    return {"pictures": list(pictures), "picture": places} if pictures else {}


def _units(text: str) -> int:
    """The length of a text in JavaScript, which counts UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _write_page(folder: Path, title: str, shown_samples: int, all_samples: int) -> None:
    template = page.environment().get_template("browser.html.j2")
    text = template.render(
        title=title, css=page.css(), script=page.script("tex.js", "browser.js"), shown_samples=shown_samples,
        all_samples=all_samples,
    )  # fmt: skip
    (folder / "index.html").write_text(text, encoding="utf-8")


def write(
    runs: Sequence[RunResults], lists: Sequence[PatternList], title: str, folder: Path, most: int = MAX_SAMPLES
) -> int:
    """Write index.html, samples-index.js and chunk-<n>.js.

    Args:
        runs: whose samples are shown.
        lists: keyword lists, of which those on reflection are marked in completions.
        title: of the report.
        folder: to write to.
        most: samples to show at most.

    Returns:
        How many samples are shown.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("chunk-*.js"):
        old.unlink()
    samples = _chosen(runs, most)
    problem = samples.groupby(["benchmark", "problem_id"], sort=False).ngroup().to_numpy()
    completions = samples.pop("completion").fillna("")
    prompts = _texts(samples["prompt"].iloc[np.unique(problem, return_index=True)[1]])
    first = _chunks(completions.str.len().clip(upper=MAX_TEXT).to_numpy(), problem)
    drawn = _drawn(runs)

    def write_chunk(number: int, start: int, end: int) -> None:
        held = [clipped(text, MAX_TEXT) for text in completions.iloc[start:end].tolist()]
        rows = samples.iloc[start:end]
        head = {
            "units": [_units(text) for text in held],
            "prompts": {p: clipped(prompts[p] or "not recorded", MAX_TEXT) for p in set(problem[start:end].tolist())},
            **({} if drawn.isdisjoint(rows["benchmark"].unique()) else _pictures(runs, rows)),
        }
        packed = _pack(head, "".join(held).encode("utf-8", "replace"))
        (folder / f"chunk-{number}.js").write_text(f'chunk({number}, "{packed}")\n', encoding="ascii")

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        list(threads.map(write_chunk, range(len(first)), first, [*first[1:], len(samples)]))
    keywords = [
        _in_javascript(entry.regex) for item in lists if item.name.startswith("reflection") for entry in item.entries
    ]
    (folder / "samples-index.js").write_text(
        f'const PACKED = "{_index(runs, samples, problem, first)}";\nconst KEYWORDS = {json.dumps(keywords)};\n',
        encoding="ascii",
    )
    _write_page(folder, title, len(samples), sum(len(run.graded) for run in runs))
    return len(samples)
