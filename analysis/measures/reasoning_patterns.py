"""Count signs of step-by-step reasoning and reflection in completions, by the keyword lists in patterns.yaml.

The lists are matched with RE2 (through Arrow), which takes linear time on any text.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.reference import PATTERNS
from analysis.results import RunResults, as_arrow
from system.errors import UserError
from system.yaml_files import read_yaml

ALL = "all benchmarks"


@dataclass(frozen=True)
class Keyword:
    """One keyword as its source prints it, the expression that finds it, and a note on what the expression matches."""

    keyword: str
    regex: str
    matches: str = ""


@dataclass(frozen=True)
class PatternList:
    """A named keyword list, as its source prints it and as it is matched here."""

    name: str
    title: str
    listed: str
    entries: tuple[Keyword, ...]

    @property
    def always(self) -> bool:
        """Whether figures show the list even without a match: the published lists, which are English."""
        return not self.name.endswith("_zh")

    @property
    def regex(self) -> str:
        """All entries as alternatives. Where two start at the same place, the earlier one matches."""
        return "|".join(f"(?:{entry.regex})" for entry in self.entries)


def load_lists(path: Path = PATTERNS) -> list[PatternList]:
    """Read the keyword lists. Raises UserError for an expression that RE2 rejects."""
    lists = []
    for name, value in read_yaml(path).items():
        entries = tuple(Keyword(**entry) for entry in value["entries"])
        for entry in entries:
            try:
                pc.count_substring_regex(pa.array([""]), entry.regex)
            except pa.ArrowInvalid as error:
                raise UserError(
                    f"{path} should contain RE2 expressions, but that of {name}: {entry.keyword} is invalid ({error})",
                    code="invalid-expression", path=str(path), keyword=entry.keyword,
                ) from None  # fmt: skip
        lists.append(PatternList(name, value["title"], value["listed"].strip(), entries))
    return lists


def count(texts: pd.Series | pa.Array | pa.ChunkedArray, regex: str) -> npt.NDArray[np.int64]:
    """Number of non-overlapping matches in each text; 0 for a null."""
    column = as_arrow(texts) if isinstance(texts, pd.Series) else texts
    matches = pc.fill_null(pc.count_substring_regex(column, regex), 0).to_numpy(zero_copy_only=False)
    return np.asarray(matches, dtype=np.int64)


def table(run: RunResults, lists: list[PatternList]) -> pd.DataFrame:
    """Matches of each list, per checkpoint and benchmark and over all benchmarks together.

    Columns: run, step, benchmark, pattern, completions, matches, per_completion, share (fraction of the completions
    with at least one match), per_1000_tokens (null where token counts are unknown).
    """
    counted = run.graded[["step", "benchmark", "completion_tokens"]].copy()
    matches = np.zeros((len(lists), len(counted)), dtype=np.int64)

    def count_cell(cell: tuple[int, str]) -> None:
        texts = run.text(*cell)
        matches[:, run.rows(*cell).index] = [count(texts, item.regex) for item in lists]

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:  # Arrow lets go of Python's lock
        list(threads.map(count_cell, run.cells))
    parts = []
    for item, list_matches in zip(lists, matches, strict=True):
        counted["matches"] = list_matches
        counted["any"] = counted["matches"] > 0
        for benchmark, chosen in [*counted.groupby("benchmark"), (ALL, counted)]:
            rows = chosen.groupby("step").agg(
                completions=("matches", "size"), matches=("matches", "sum"), per_completion=("matches", "mean"),
                share=("any", "mean"), tokens=("completion_tokens", "sum"),
            )  # fmt: skip
            tokens = rows.pop("tokens")
            rows["per_1000_tokens"] = 1000 * rows["matches"] / tokens.where(tokens > 0)
            keys = {"run": run.name, "step": rows.index, "benchmark": benchmark, "pattern": item.name}
            parts.append(pd.DataFrame({**keys, **rows}))
    return pd.concat(parts, ignore_index=True)
