"""How often completions show step-by-step reasoning and reflection, by keyword lists in patterns.yaml.

The lists are matched with RE2 (through Arrow), whose time is linear in the text whatever the text is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from analysis.results import Run
from contracts.errors import UserError

LISTS = Path(__file__).with_name("patterns.yaml")
ALL = "all benchmarks"


@dataclass(frozen=True)
class Entry:
    """One keyword as the source prints it, the expression that finds it, and a note on what that takes."""

    keyword: str
    regex: str
    matches: str = ""


@dataclass(frozen=True)
class PatternList:
    """A named keyword list, as printed at its source and as matched here."""

    name: str
    title: str
    listed: str
    entries: tuple[Entry, ...]

    @property
    def always(self) -> bool:
        """Whether figures show it even where nothing was found: the report's own lists, which are English."""
        return not self.name.endswith("_zh")

    @property
    def regex(self) -> str:
        """All entries as alternatives; earlier ones win where two start at the same place."""
        return "|".join(f"(?:{entry.regex})" for entry in self.entries)


def load_lists(path: Path = LISTS) -> list[PatternList]:
    """Read the keyword lists; an expression that RE2 refuses is a UserError naming it."""
    lists = []
    for name, value in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        entries = tuple(Entry(**entry) for entry in value["entries"])
        for entry in entries:
            try:
                pc.count_substring_regex(pa.array([""]), entry.regex)
            except pa.ArrowInvalid as error:
                raise UserError(
                    f"{path} should hold RE2 expressions, but that of {name}: {entry.keyword} is none ({error})"
                ) from None
        lists.append(PatternList(name, value["title"], value["listed"].strip(), entries))
    return lists


def count(texts: pd.Series, regex: str) -> np.ndarray:
    """Matches that do not overlap, in each text; a missing text has none."""
    column = pa.array(texts, pa.large_string(), from_pandas=True)
    return pc.fill_null(pc.count_substring_regex(column, regex), 0).to_numpy(zero_copy_only=False).astype(np.int64)


def table(run: Run, lists: list[PatternList]) -> pd.DataFrame:
    """Counts per completion and shares of completions, for each list, checkpoint and benchmark, and over all of them.

    Columns: run, step, benchmark, pattern, completions, matches, per_completion, share (fraction of the completions
    with at least one match), per_1000_tokens (null where token counts are unknown).
    """
    counted = run.graded[["step", "benchmark", "completion_tokens"]].copy()
    parts = []
    for item in lists:
        counted["matches"] = count(run.graded["completion"], item.regex)
        counted["any"] = counted["matches"] > 0
        for benchmark, chosen in [*counted.groupby("benchmark"), (ALL, counted)]:
            rows = chosen.groupby("step").agg(
                completions=("matches", "size"), matches=("matches", "sum"), per_completion=("matches", "mean"),
                share=("any", "mean"), tokens=("completion_tokens", "sum"),
            )  # fmt: skip
            rows["per_1000_tokens"] = 1000 * rows["matches"] / rows["tokens"].where(rows["tokens"] > 0)
            parts.append(
                rows.drop(columns="tokens").reset_index().assign(run=run.name, benchmark=benchmark, pattern=item.name)
            )
    columns = [
        "run",
        "step",
        "benchmark",
        "pattern",
        "completions",
        "matches",
        "per_completion",
        "share",
        "per_1000_tokens",
    ]
    return pd.concat(parts, ignore_index=True)[columns]
