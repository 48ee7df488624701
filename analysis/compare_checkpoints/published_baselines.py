"""Published results by name, from results/reference/baselines.yaml: baselines for a checkpoint."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.comparability import Result
from analysis.reference import REFERENCE, read_csv
from eval import benchmark
from system.errors import UserError
from system.unknown_names import nearest
from system.yaml_files import read_yaml


@dataclass(frozen=True)
class PublishedScore:
    """A published accuracy on one benchmark, as a fraction. What the source does not state is None."""

    accuracy: float
    deviation: float | None  # standard deviation over seeds of the accuracy of one sample per problem
    problems: int
    repeats: int | None

    @property
    def error(self) -> float:
        """An upper bound of the standard error, with problems as a random sample.

        The variance of one sample for each of n problems is p(1-p)/n, partly between problems and partly within them.
        Repeats shrink only the part within. That part is the squared deviation over seeds, if the source states
        deviation and repeats. Otherwise nothing is subtracted.
        """
        single = self.accuracy * (1 - self.accuracy) / self.problems
        if self.deviation is None or self.repeats is None:
            return math.sqrt(single)
        within = self.deviation**2
        return math.sqrt(max(single - within * (1 - 1 / self.repeats), within / self.repeats))

    @property
    def error_on_same_problems(self) -> float:
        """Standard error over samples of the same problems, at most that of one sample per problem.

        The deviation over seeds is printed with one decimal, so it is at least 0.05 points.
        """
        if self.deviation is None or self.repeats is None:
            return self.error
        return max(self.deviation, 0.0005) / math.sqrt(self.repeats)


@dataclass(frozen=True)
class PublishedBaseline:
    """A published row: its name here, its source, and its scores by benchmark.

    What the source states of its protocol and grader is compared with what is recorded of samples.
    """

    name: str
    title: str
    source: str
    protocol: str
    scores: dict[str, PublishedScore]
    settings: dict[str, object] | None = None  # of the protocol, by the names of eval/protocols.yaml; None: not stated
    grader: str | None = None

    def differences(self, result: Result, accepted: Collection[str]) -> list[str]:
        """Why samples may not be compared with this row: another protocol or grader, or one that is not stated.

        Args:
            result: the samples, and what is recorded of them.
            accepted: what may differ: prompt, protocol, grader.
        """
        recorded = result.settings.get("protocol")
        ours = recorded if isinstance(recorded, dict) else {}
        reasons = []
        if self.settings is None and "protocol" not in accepted:
            reasons.append("the source does not state its protocol; --accept protocol compares all the same")
        for key, theirs in (self.settings or {}).items():
            kind = "prompt" if key == "prompt" else "protocol"
            if kind not in accepted and ours.get(key) != theirs:
                reasons.append(
                    f"different {key}: {theirs} at the source, {ours.get(key, 'not recorded')} here; "
                    f"--accept {kind} compares all the same"
                )
        graders = ", ".join(sorted(result.samples["grader"].dropna().unique())) or "not recorded"
        if "grader" not in accepted and graders != self.grader:
            reasons.append(
                f"different grader: {self.grader or 'not stated'} at the source, {graders} here; --accept grader "
                "compares all the same"
            )
        return reasons


def load(folder: Path = REFERENCE) -> dict[str, PublishedBaseline]:
    """All published rows by name."""
    baselines: dict[str, PublishedBaseline] = {}
    for key, entry in read_yaml(folder / "baselines.yaml").items():
        sizes = {name: benchmark.size(name) for name in entry["benchmarks"]}
        for row in read_csv(folder / entry["file"]).to_dict("records"):
            name = f"{key}/{entry['names'].format(**{str(column): value for column, value in row.items()})}"
            if name in baselines:
                raise ValueError(f"results/reference has '{name}' twice")
            scores = {
                benchmark_name: _published_score(entry, row, benchmark_name, problems)
                for benchmark_name, problems in sizes.items()
                if not pd.isna(row[benchmark_name])
            }
            baselines[name] = PublishedBaseline(
                name, entry["title"], entry["source"], entry["protocol"], scores, entry["settings"], entry["grader"]
            )
    return baselines


def _published_score(
    entry: Mapping[str, Any], row: Mapping[Hashable, Any], benchmark_name: str, problems: int
) -> PublishedScore:
    suffix, repeats = entry["deviation"], entry["repeats"]
    return PublishedScore(
        float(row[benchmark_name]) / 100,
        None if suffix is None else float(row[f"{benchmark_name}{suffix}"]) / 100,
        problems,
        repeats[benchmark_name] if repeats else None,
    )


def search(query: str, names: Iterable[str]) -> list[str]:
    """Names that contain all the words of the query in any case."""
    return [name for name in names if all(part in name.lower() for part in query.lower().split())]


def find(name: str, others: Iterable[str] = ()) -> PublishedBaseline:
    """The published row of this name, with or without its set.

    Args:
        name: as typed.
        others: other names that could have been meant, also considered for the nearest names.

    Raises:
        UserError: there is no such row, or several. The message has the nearest names.
    """
    known = load()
    if name in known:
        return known[name]
    same = [full for full in known if full.lower() == name.lower() or full.lower().endswith(f"/{name.lower()}")]
    if len(same) == 1:
        return known[same[0]]
    if same:
        raise UserError(
            f"'{name}' names several baselines: {', '.join(same)}; give one of these full names",
            code="ambiguous-name", name=name, matches=same,
        )  # fmt: skip
    close = nearest(name, [*known, *others])
    hint = f"the nearest names are: {', '.join(close)}" if close else "no known name is similar"
    raise UserError(
        f"'{name}' is neither a file or folder of graded samples nor a baseline; {hint} "
        "(crosszero compare-checkpoints baselines lists all)",
        code="unknown-name", name=name, nearest=close,
    )  # fmt: skip
