"""The sample browser: a page, an index of all samples, and their texts in compressed chunks beside it.

It opens from a disk without a server. The chunks are script files because a page from a disk may not fetch. Texts reach
the page only as data and are shown as text.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis import hash_order
from analysis.patterns import PatternList
from analysis.report import page
from analysis.results import RunResults
from contracts.steps import folder as step_folder
from contracts.text_safety import clipped
from tasks import registry

MAX_SAMPLES = 100_000  # if there are more, whole problems are left out in the order of a hash of their names
CHUNK = 2_000_000  # characters of text in a chunk
MAX_TEXT = 40_000  # characters of a completion
WRAPPED = re.compile(r"\(\?([im]+):(.*)\)", re.DOTALL)


def _in_javascript(regex: str) -> tuple[str, str]:
    """An expression and its flags, because not every browser supports flags inside an expression."""
    wrapped = WRAPPED.fullmatch(regex)
    return (wrapped[2], wrapped[1]) if wrapped else (regex, "")


def _chosen(runs: Sequence[RunResults], most: int) -> pd.DataFrame:
    """The samples of all runs, grouped by problem. Only whole problems, as many as fit."""
    parts = [run.graded.assign(run=number) for number, run in enumerate(runs)]
    samples = pd.concat(parts, ignore_index=True)
    sizes = samples.groupby(["benchmark", "problem_id"]).size()
    if len(samples) > most:
        ordered = sizes.iloc[np.argsort([hash_order.place(*names) for names in sizes.index])]
        kept = ordered[ordered.cumsum() <= most].index
        samples = samples[pd.MultiIndex.from_frame(samples[["benchmark", "problem_id"]]).isin(kept)]
    return samples.sort_values(["benchmark", "problem_id", "run", "step", "repeat"], ignore_index=True)


def _pack(content: Any) -> str:
    return base64.b64encode(gzip.compress(json.dumps(content).encode(), 6, mtime=0)).decode()


def _codes(values: pd.Series) -> tuple[list[int], list[str]]:
    codes, names = pd.factorize(values.astype(object).where(values.notna(), "unknown"))
    return codes.tolist(), [str(name) for name in names]


def _texts(values: pd.Series) -> list[str | None]:
    return [None if value is None or pd.isna(value) else str(value) for value in values.astype(object)]


def _chunks(completions: list[str], problem: list[int]) -> list[int]:
    """The first row of each chunk. The completions of a problem are in one chunk, so that opening it needs one file."""
    first, size = [0], 0
    for row, text in enumerate(completions):
        if size > CHUNK and problem[row] != problem[row - 1]:
            first.append(row)
            size = 0
        size += len(text)
    return first


def _index(runs: Sequence[RunResults], samples: pd.DataFrame, problem: list[int], first: list[int]) -> dict[str, Any]:
    """The index of all samples: columns with one value per sample, and the names that their codes stand for."""
    benchmark, benchmarks = _codes(samples["benchmark"])
    verdict, verdicts = _codes(samples["verdict"])
    finish, finishes = _codes(samples["finish_reason"])
    firsts = samples.iloc[np.unique(problem, return_index=True)[1]]  # one sample of each problem
    return {
        "runs": [run.name for run in runs],
        "titles": {run.name: run.shown for run in runs},
        "trained": [run.trained for run in runs],
        "benchmarks": benchmarks,
        "verdicts": verdicts,
        "finishes": finishes,
        "problems": [clipped(str(name), 200) for name in firsts["problem_id"]],
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
        "chunk": (np.searchsorted(first, np.arange(len(samples)), side="right") - 1).tolist(),
        "run": samples["run"].tolist(),
        "step": samples["step"].tolist(),
        "repeat": samples["repeat"].tolist(),
        "problem": problem,
        "benchmark": benchmark,
        "verdict": verdict,
        "finish": finish,
        "length": [-1 if pd.isna(value) else int(value) for value in samples["completion_tokens"]],
        "answer": [None if answer is None else clipped(answer, 200) for answer in _texts(samples["answer"])],
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
    problem = pd.factorize(pd.MultiIndex.from_frame(samples[["benchmark", "problem_id"]]))[0].tolist()
    completions = [clipped(text or "", MAX_TEXT) for text in _texts(samples["completion"])]
    prompts = _texts(samples["prompt"].iloc[np.unique(problem, return_index=True)[1]])
    first = _chunks(completions, problem)
    for number, start in enumerate(first):
        end = first[number + 1] if number + 1 < len(first) else len(samples)
        asked = {p: clipped(prompts[p] or "not recorded", MAX_TEXT) for p in sorted(set(problem[start:end]))}
        packed = _pack(
            {"completions": completions[start:end], "prompts": asked, **_pictures(runs, samples.iloc[start:end])}
        )
        (folder / f"chunk-{number}.js").write_text(f'chunk({number}, "{packed}")\n', encoding="ascii")
    keywords = [
        _in_javascript(entry.regex) for item in lists if item.name.startswith("reflection") for entry in item.entries
    ]
    index = json.dumps(_index(runs, samples, problem, first))
    (folder / "samples-index.js").write_text(
        f"const INDEX = {index};\nconst KEYWORDS = {json.dumps(keywords)};\n", encoding="ascii"
    )
    made = (
        page.environment()
        .get_template("browser.html.j2")
        .render(
            title=title,
            css=page.css(),
            script=page.script("tex.js", "browser.js"),
            count=len(samples),
            of=sum(len(run.graded) for run in runs),
        )
    )
    (folder / "index.html").write_text(made, encoding="utf-8")
    return len(samples)
