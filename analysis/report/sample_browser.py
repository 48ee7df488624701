"""The sample browser: one page, an index of all samples, and their texts in packed parts beside it.

It opens from a disk, without a server: parts are script files, for a page from a disk may not fetch. Texts reach the
page as data alone and are shown as text.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from analysis.patterns import PatternList
from analysis.report import page
from analysis.results import Run
from analysis.text_safety import clipped
from contracts.steps import folder as step_folder

MOST = 100_000  # samples on the page; beyond, whole problems are left out by a hash of their names
PART = 2_000_000  # characters of text in a part
LONGEST = 40_000  # characters of a completion
WRAPPED = re.compile(r"\(\?([im]+):(.*)\)", re.DOTALL)


def _in_javascript(regex: str) -> tuple[str, str]:
    """An expression and its flags: not every browser knows RE2's flags inside an expression."""
    wrapped = WRAPPED.fullmatch(regex)
    return (wrapped[2], wrapped[1]) if wrapped else (regex, "")


def _order(problem: str) -> str:
    return hashlib.sha256(problem.encode("utf-8", "surrogatepass")).hexdigest()


def _chosen(runs: Sequence[Run], most: int) -> pd.DataFrame:
    """The samples of all runs, a problem's side by side; whole problems, as many as fit."""
    parts = [run.graded.assign(run=number) for number, run in enumerate(runs)]
    samples = pd.concat(parts, ignore_index=True)
    sizes = samples.groupby(["benchmark", "problem_id"]).size()
    if len(samples) > most:
        ordered = sizes.iloc[np.argsort([_order(f"{b}\0{p}") for b, p in sizes.index])]
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


def _none_is(value: Any, other: int) -> int:
    return other if pd.isna(value) else int(value)


def write(runs: Sequence[Run], lists: Sequence[PatternList], title: str, folder: Path, most: int = MOST) -> int:
    """Write index.html, samples-index.js and chunk-<n>.js; returns how many samples are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("chunk-*.js"):
        old.unlink()
    samples = _chosen(runs, most)
    problem, names = pd.factorize(pd.MultiIndex.from_frame(samples[["benchmark", "problem_id"]]))
    completions = [clipped(text or "", LONGEST) for text in _texts(samples["completion"])]
    firsts = np.unique(problem, return_index=True)[1]
    prompts = [clipped(text or "not recorded", LONGEST) for text in _texts(samples["prompt"].iloc[firsts])]

    parts, first, size = np.zeros(len(samples), dtype=int), [0], 0
    for row, text in enumerate(completions):
        # A problem stays in one part, so that opening it needs one file.
        if size > PART and problem[row] != problem[row - 1]:
            first.append(row)
            size = 0
        parts[row] = len(first) - 1
        size += len(text)
    for number, start in enumerate(first):
        end = first[number + 1] if number + 1 < len(first) else len(samples)
        asked = {int(p): prompts[p] for p in np.unique(problem[start:end])}
        packed = _pack({"completions": completions[start:end], "prompts": asked})
        (folder / f"chunk-{number}.js").write_text(f'chunk({number}, "{packed}")\n', encoding="ascii")

    benchmark, benchmarks = _codes(samples["benchmark"])
    verdict, verdicts = _codes(samples["verdict"])
    finish, finishes = _codes(samples["finish_reason"])
    index = {
        "runs": [run.name for run in runs],
        "trained": [run.trained for run in runs],
        "benchmarks": benchmarks,
        "verdicts": verdicts,
        "finishes": finishes,
        "problems": [clipped(str(name[1]), 200) for name in names],
        "golds": [None if gold is None else clipped(gold, 300) for gold in _texts(samples["gold"].iloc[firsts])],
        "labels": {f"{i} {step}": run.label(step) for i, run in enumerate(runs) for step in run.steps},
        "files": {
            f"{i} {step} {benchmarks.index(name)}": f"runs/{run.name}/graded/{step_folder(step)}/{name}.parquet"
            for i, run in enumerate(runs)
            for step in run.steps
            for name in run.benchmarks
            if name in benchmarks
        },
        "first": first,
        "chunk": parts.tolist(),
        "run": samples["run"].tolist(),
        "step": samples["step"].tolist(),
        "repeat": samples["repeat"].tolist(),
        "problem": problem.tolist(),
        "benchmark": benchmark,
        "verdict": verdict,
        "finish": finish,
        "length": [_none_is(value, -1) for value in samples["completion_tokens"]],
        "answer": [None if answer is None else clipped(answer, 200) for answer in _texts(samples["answer"])],
    }
    keywords = [
        _in_javascript(entry.regex) for item in lists if item.name.startswith("reflection") for entry in item.entries
    ]
    (folder / "samples-index.js").write_text(
        f"const INDEX = {json.dumps(index)};\nconst KEYWORDS = {json.dumps(keywords)};\n", encoding="ascii"
    )
    script = "\n".join((page.TEMPLATES / name).read_text(encoding="utf-8") for name in ("tex.js", "browser.js"))
    css = (page.TEMPLATES / "report.css").read_text(encoding="utf-8")
    html = page.environment().get_template("browser.html.j2")
    made = html.render(
        title=title, css=Markup(css), script=Markup(script), count=len(samples), of=sum(len(run.graded) for run in runs)
    )
    (folder / "index.html").write_text(made, encoding="utf-8")
    return len(samples)
