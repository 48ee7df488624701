"""Published figures by name, from results/reference/baselines.yaml: what a checkpoint can be compared with."""

from __future__ import annotations

import difflib
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from contracts.errors import UserError

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"


@dataclass(frozen=True)
class Figure:
    """A published accuracy on one benchmark, as fractions; what the source does not say is None."""

    accuracy: float
    deviation: float | None  # standard deviation over seeds of the accuracy of one sample per problem
    problems: int
    repeats: int | None

    @property
    def error(self) -> float:
        """The most that the standard error can be, problems counted as drawn at random.

        A single sample of each of n problems has variance p(1-p)/n, part between problems and part within; repeats
        shrink the second alone. Its size is the squared deviation over seeds, where deviation and repeats are stated;
        else nothing is taken off.
        """
        single = self.accuracy * (1 - self.accuracy) / self.problems
        if self.deviation is None or self.repeats is None:
            return math.sqrt(single)
        within = self.deviation**2
        return math.sqrt(max(single - within * (1 - 1 / self.repeats), within / self.repeats))


@dataclass(frozen=True)
class Published:
    """A published row: its name here, where it stands, and its figures by benchmark."""

    name: str
    title: str
    source: str
    protocol: str
    figures: dict[str, Figure]


def _rows(file: Path) -> list[dict[str, Any]]:
    """Rows of a CSV below its head of comment lines; not read_csv's `comment`, which would cut links at their #."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    rows = pd.read_csv(io.StringIO("".join(x for x in lines if not x.startswith("#"))))
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


def load(folder: Path = REFERENCE) -> dict[str, Published]:
    """All published rows by name."""
    found: dict[str, Published] = {}
    for key, entry in yaml.safe_load((folder / "baselines.yaml").read_text(encoding="utf-8")).items():
        for row in _rows(folder / entry["file"]):
            figures = {}
            for benchmark, problems in entry["problems"].items():
                if pd.isna(row[benchmark]):
                    continue
                suffix = entry["deviation"]
                deviation = None if suffix is None else float(row[f"{benchmark}{suffix}"]) / 100
                figures[benchmark] = Figure(float(row[benchmark]) / 100, deviation, problems, entry["repeats"])
            name = f"{key}/{entry['names'].format(**row)}"
            if name in found:
                raise ValueError(f"results/reference names '{name}' twice")
            found[name] = Published(name, entry["title"], entry["source"], entry["protocol"], figures)
    return found


def search(words: str, names: Iterable[str]) -> list[str]:
    """Names that hold all the words, whatever the case."""
    return [name for name in names if all(word in name.lower() for word in words.lower().split())]


def nearest(name: str, names: Iterable[str], most: int = 5) -> list[str]:
    """The names most like a mistyped one, also where its set was left out."""
    whole = {known.lower(): known for known in names}
    last = {known.rpartition("/")[2]: original for known, original in whole.items()}
    close = difflib.get_close_matches(name.lower(), [*whole, *last], n=2 * most, cutoff=0.5)
    return list(dict.fromkeys({**last, **whole}[word] for word in close))[:most]


def find(name: str, others: Iterable[str] = ()) -> Published:
    """The published row of this name, with or without its set.

    Raises:
        UserError: there is none, or several; with the nearest names, also among `others` that could have been meant.
    """
    known = load()
    if name in known:
        return known[name]
    same = [full for full in known if full.lower() == name.lower() or full.lower().endswith(f"/{name.lower()}")]
    if len(same) == 1:
        return known[same[0]]
    if same:
        raise UserError(f"'{name}' is the name of several baselines: {', '.join(same)}; give one of them whole")
    close = nearest(name, [*known, *others])
    hint = f"the nearest names are: {', '.join(close)}" if close else "no name is near it"
    raise UserError(
        f"'{name}' is neither a file or folder of graded samples nor a baseline; {hint} "
        "(python -m analysis.gate baselines lists all)"
    )
