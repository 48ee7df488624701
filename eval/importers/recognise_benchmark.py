"""Which benchmark generations are of: decided by their questions, against the problems of all benchmarks here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from contracts.paths import ResultsFolder
from eval import benchmark as benchmarks
from eval.importers.formats import Row
from eval.importers.problem_matching import Questions, match
from system.errors import UserError
from tasks import dataset_specs, load_problems
from tasks.problems import to_table

PROBES = 40  # questions by which benchmarks are looked for before all are matched
LISTED = 5  # candidates in a message
SAME_GOLDS = 0.9  # share of golds that are the benchmark's, where problems are matched by their order


class Part(NamedTuple):
    """The rows of one benchmark, with its ids and golds, and its problem table (PROBLEM)."""

    benchmark: str
    rows: list[Row]
    problems: pa.Table


class ProblemTables:
    """Problem tables by benchmark, each loaded when it is first needed.

    Args:
        results: those that the workflow has stored are taken from there.
        mirror: a folder to read data sets from; None for the hub.
    """

    def __init__(self, results: ResultsFolder, mirror: Path | None) -> None:
        """Nothing is loaded yet."""
        self._results, self._mirror = results, mirror
        self._tables: dict[str, pa.Table] = {}
        self.missing: dict[str, str] = {}  # why those that were skipped could not be loaded

    def load(self, name: str) -> pa.Table:
        """The problems of a benchmark. Raises UserError if its data cannot be had."""
        if name not in self._tables:
            if self._results.problems("benchmarks", name).is_file():
                self._tables[name] = benchmarks.problems(self._results.benchmarks, name)
            else:
                self._tables[name] = to_table(load_problems.load(dataset_specs.find(name), self._mirror)[0])
        return self._tables[name]

    def available(self, names: Sequence[str]) -> dict[str, pa.Table]:
        """The tables of those that can be loaded."""
        tables = {}
        for name in names:
            try:
                tables[name] = self.load(name)
            except UserError as error:
                self.missing[name] = str(error)
        return tables


def _benchmarks_to_try() -> list[list[str]]:
    """The benchmarks: read as they were published, then those whose rows are converted, then those generated here."""
    specs = {name: dataset_specs.find(name).spec for name in benchmarks.names()}
    cost = {name: 2 if "generate" in spec else int("convert" in spec) for name, spec in specs.items()}
    return [[name for name in specs if cost[name] == tier] for tier in range(3)]


def recognise(rows: Sequence[Row], tables: ProblemTables, *, allow_missing: bool = False) -> list[Part]:
    """Divide rows by the benchmarks whose questions they were asked.

    Args:
        rows: as eval.importers.recognise_file reads them.
        tables: of the benchmarks.
        allow_missing: leave out rows that no benchmark has.

    Raises:
        UserError: the rows have no questions, none or only some are of a benchmark here, or they are of several alike.
    """
    if not any(row.get("question") or row.get("prompt") for row in rows):
        raise UserError(
            "the generations have no questions by which their benchmark could be recognised: name the field that has "
            "them (--map question=FIELD), or the benchmark (--benchmark)",
            code="benchmark-not-recognised",
        )
    parts: dict[str, list[int]] = {}
    left = list(range(len(rows)))
    *published, generated = _benchmarks_to_try()
    for names in [*published, generated]:
        if left and not (parts and names is generated):
            available = tables.available(names)
            questions = {name: Questions(table.to_pylist()) for name, table in available.items()}
            more, left = _divide(rows, left, questions, lambda name: len(tables.load(name)))
            parts |= more
    if left and not (parts and allow_missing):
        raise _unknown_questions(rows, left, parts, tables)
    return [Part(name, *_matched(rows, index, tables.load(name))) for name, index in parts.items()]


def _divide(
    rows: Sequence[Row], left: list[int], questions: Mapping[str, Questions], size: Callable[[str], int]
) -> tuple[dict[str, list[int]], list[int]]:
    """The rows of each benchmark, the one with most of them first, and those of none."""
    parts: dict[str, list[int]] = {}
    while left:
        probes = left[:: max(1, len(left) // PROBES)]
        likely = [name for name in questions if any(questions[name].index_in(rows[i]) is not None for i in probes)]
        matched = {name: {i: questions[name].index_in(rows[i]) for i in left} for name in likely if name not in parts}
        by_name = {name: {i: p for i, p in index.items() if p is not None} for name, index in matched.items()}
        if not by_name:
            break
        chosen = _best(by_name, size)
        parts[chosen] = list(by_name[chosen])
        left = [i for i in left if i not in by_name[chosen]]
    return parts, left


def _best(matched: Mapping[str, Mapping[int, int]], size: Callable[[str], int]) -> str:
    """The benchmark of most rows; of several, the only one all of whose problems are there."""
    most = max(map(len, matched.values()))
    equal = [name for name, index in matched.items() if len(index) == most]
    whole = [name for name in equal if len(set(matched[name].values())) == size(name)]
    if len(equal) == 1 or len(whole) == 1:
        return (whole or equal)[0]
    counts = ", ".join(f"{name} has {len(set(matched[name].values()))} of them" for name in equal[:LISTED])
    raise UserError(
        f"the questions are of several benchmarks alike, {counts}: name one with --benchmark",
        code="ambiguous-benchmark",
        candidates=equal,
    )


def _matched(rows: Sequence[Row], indices: Sequence[int], table: pa.Table) -> tuple[list[Row], pa.Table]:
    return match([rows[i] for i in indices], table, "question"), table


def _unknown_questions(
    rows: Sequence[Row], left: Sequence[int], parts: Mapping[str, Sequence[int]], tables: ProblemTables
) -> UserError:
    first = " ".join(str(rows[left[0]].get("question") or rows[left[0]].get("prompt")).split())[:80]
    known = f" ({', '.join(f'{name} has {len(index)}' for name, index in parts.items())})" if parts else ""
    remedy = "leave them out with crosszero grade --allow-missing, or " if parts else ""
    add = "or add one (CONTRIBUTING.md, Add a benchmark)"
    if tables.missing:  # the likelier reason
        some, *_ = tables.missing.values()
        add = f"or have the data of these here, {', '.join(tables.missing)}: {some}"
    which = "no benchmark whose data could be loaded has" if tables.missing else "no benchmark here has"
    return UserError(
        f"{len(left)} of {len(rows)} generations are of questions that {which}, such as {first!r}{known}"
        f": {remedy}name the benchmark with --benchmark, {add}",
        code="unknown-questions",
        count=len(left),
        candidates=list(parts),
    )


def assign(rows: Sequence[Row], name: str, tables: ProblemTables, *, allow_missing: bool = False) -> Part:
    """The rows as those of a benchmark that the user names.

    By question; without questions by id, or by order if the golds show that it is the benchmark's.

    Raises:
        UserError: there is no such benchmark, or a row fits none of its problems.
    """
    benchmarks.check_names([name])
    table = tables.load(name)
    if any(row.get("question") or row.get("prompt") for row in rows):
        return Part(name, match(rows, table, "question", allow_missing=allow_missing), table)
    ids = set(table["problem_id"].to_pylist())
    if all(row["problem_id"] in ids for row in rows):
        return Part(name, match(rows, table, "id"), table)
    ordered = match(rows, table, "order", allow_missing=allow_missing)
    same = sum("".join(str(row["source_gold"]).split()) == "".join(row["gold"].split()) for row in ordered)
    if same < SAME_GOLDS * len(ordered):
        raise UserError(
            f"the generations have neither questions nor ids of {name}, and in the order of its problems only {same} "
            f"of {len(ordered)} golds are the same: add the question to each row",
            code="unmatched-generations",
            count=len(ordered) - same,
        )
    return Part(name, ordered, table)
