"""Generations made elsewhere, from files to scores: recognised, matched to our problems, graded by every grader.

They are a run like ours, `imported/<name>`, under results/<scale>/runs, with the folders samples, graded and regraded,
the score table, and problems/, which has those problems that were asked. What was made once from the same files with
the same options is not made again.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts import paths, provenance, tables
from contracts.fingerprint import fingerprint
from contracts.paths import ResultsFolder, RunFolder
from eval import benchmark as benchmarks
from eval import statistics
from eval.grade import grade_file
from eval.importers import recognise_benchmark, recognise_file
from eval.importers.gold_differences import gold_differences, other_golds_text
from eval.importers.import_samples import check_sample_names, number_repeats, source_file, source_rows, to_samples
from eval.importers.missing_answers import rule_for
from eval.importers.recognise_benchmark import Part, ProblemTables
from eval.run_settings import grading_settings
from eval.score import graded_record, score_run
from grading.verdicts import DEFAULT
from system import durable, json_lines
from system.errors import UserError
from tasks import registry

IMPORTED = "imported/"  # the ids of these runs begin with it
RECORD, COLUMNS = "imported.json", "columns"
STEP = 0
PROTOCOLS_RULE = "protocol"  # in the name of regraded/<grader>+…: the extraction rule that graded/ has, too
LISTED = 6  # files in a note
OWN = "the file's "  # verdicts of the program that wrote it


class ScoreLine(NamedTuple):
    """A score by one grader; shares are fractions, the last two of completions, if they are known."""

    benchmark: str
    grader: str
    value: float
    low: float
    high: float
    problems: int
    repeats: int
    whole: int  # problems of the benchmark
    truncated: float | None = None
    silent: float | None = None  # finished without an answer


@dataclass(frozen=True)
class Request:
    """What to grade, and how.

    Attributes:
        files: files, patterns and folders.
        results: of the scale.
        mirror: a folder to read benchmarks from; None for the hub.
        benchmark: its name; None to recognise it.
        mapping: fields of plain tables, besides those that are guessed.
        extraction: where to look for an answer without a box; None to choose by the completions.
        allow_missing: leave out generations of questions that are not recognised.
        name: of the run; None for one made of the files' names and contents.
    """

    files: tuple[str, ...]
    results: ResultsFolder
    mirror: Path | None = None
    benchmark: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    extraction: str | None = None
    allow_missing: bool = False
    name: str | None = None

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What decides the result, besides the version of graders: contents of files, not their names."""
        sources = recognise_file.expand(self.files)
        hashes = sorted(provenance.sha256(source.path) + source.model for source in sources)
        options = {"benchmark": self.benchmark, "map": dict(self.mapping), "extraction": self.extraction}
        return {"files": hashes, "allow_missing": self.allow_missing, **options}

    @property
    def run(self) -> str:
        """The id of the run."""
        if self.name is not None:
            return self.name if self.name.startswith(IMPORTED) else IMPORTED + self.name
        path, model = recognise_file.split_model(self.files[0])
        whole = f"{path.resolve().name.split('.jsonl')[0].removesuffix('.parquet')}-{model}"
        stem = re.sub(r"[^\w.+-]+", "-", whole).strip("-.") or "mine"
        return f"{IMPORTED}{stem}-{fingerprint(self.identity)[:8]}"


@dataclass(frozen=True)
class GradedGenerations:
    """What came out, which is also what is recorded."""

    run: str
    title: str
    layout: str
    extraction: str
    lines: tuple[ScoreLine, ...]
    notes: tuple[str, ...]
    identity: dict[str, Any]
    versions: dict[str, str]


def grade_generations(request: Request) -> GradedGenerations:
    """Grade generations, or read what an earlier call recorded.

    Raises:
        UserError: a file or a question is not recognised, the generations have gaps, or the name is another's.
    """
    folder = request.results.run(request.run)
    stored = _stored(folder)
    if stored and stored.identity != request.identity:
        raise UserError(
            f"{request.run} holds the verdicts of other files, or of these with other options ({stored.title}): choose "
            f"another --run, or delete {folder.path}",
            code="name-in-use",
            name=request.run,
        )
    if stored and stored.versions == _versions(stored.versions.keys() - {COLUMNS}):
        return stored
    _clear(folder, request, stored)
    generations, others = recognise_file.read_all(request.files, request.mapping)
    rows = list(chain.from_iterable(one.rows for one in generations))
    problem_tables = ProblemTables(request.results, request.mirror)
    options = {"allow_missing": request.allow_missing}
    if request.benchmark:
        parts = [recognise_benchmark.assign(rows, request.benchmark, problem_tables, **options)]
    else:
        parts = recognise_benchmark.recognise(rows, problem_tables, **options)
    rules = {part.benchmark: request.extraction or _rule_of(part) for part in parts}
    lines = list(chain.from_iterable(_grade_part(part, folder, request, generations, rules) for part in parts))
    _score(folder)
    result = GradedGenerations(
        request.run, _title(request.files), generations[0].layout, ", ".join(sorted({*rules.values()})), tuple(lines),
        tuple(_notes(rows, parts, others, rules, request)), request.identity,
        _versions(benchmarks.task_of(part.benchmark) for part in parts),
    )  # fmt: skip
    durable.write_text(folder.path / RECORD, json.dumps(asdict(result), indent=2) + "\n")
    return result


def _versions(tasks: Iterable[str]) -> dict[str, str]:
    """What graded, and which columns a record has: another release's record is made again."""
    return grading_settings(tasks) | {COLUMNS: " ".join(ScoreLine._fields)}


def _stored(folder: RunFolder) -> GradedGenerations | None:
    """What an earlier call recorded, if it was finished."""
    file = folder.path / RECORD
    if not file.is_file():
        return None
    content = provenance.read_record(file)
    try:
        lines = tuple(ScoreLine(*line) for line in content.pop("lines"))
        return GradedGenerations(**content | {"lines": lines, "notes": tuple(content["notes"])})
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{file} is damaged ({error}): delete {folder.path} to grade the files again", code="damaged-record"
        ) from None


def _clear(folder: RunFolder, request: Request, stored: GradedGenerations | None) -> None:
    """Delete what an earlier call left: by other versions of the graders, or unfinished."""
    if stored is None and request.name is not None and folder.path.exists():
        raise UserError(
            f"{folder.path} was not finished, or is not of this command: choose another --run, or delete it",
            code="name-in-use",
            name=request.run,
        )
    if folder.path.exists():
        shutil.rmtree(folder.path)


def _title(files: Sequence[str]) -> str:
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{Path(files[0]).name}{more}"


def _rule_of(part: Part) -> str:
    return rule_for([row["completion"] for row in part.rows], benchmarks.task_of(part.benchmark))


def _grade_part(
    part: Part, folder: RunFolder, request: Request, files: Sequence[recognise_file.Generations],
    rules: Mapping[str, str],
) -> list[ScoreLine]:  # fmt: skip
    """Write samples and verdicts of one benchmark; returns its scores by grader."""
    name, layout = part.benchmark, files[0].layout
    check_sample_names(name, request.run, STEP)
    number_repeats(part.rows)
    _check_repeats(part)
    samples = paths.table(folder.samples, STEP, name)
    tables.write(to_samples(part.rows, layout, name, request.run, STEP), tables.SAMPLE, samples)
    durable.write_text(source_file(samples), "".join(map(json_lines.dump, source_rows(part.rows))))
    problems, subset = _problems_asked(part)
    tables.write(problems, tables.PROBLEM, folder.path / "problems" / f"{name}.parquet")
    provenance.write(
        samples, imported={str(one.path): provenance.sha256(one.path) for one in files}, layout=layout,
        rows=len(part.rows), named_by_user=request.benchmark is not None, subset=subset,
    )  # fmt: skip
    lines = []
    for grader in _graders(name):
        own = folder if grader in (None, DEFAULT) else folder.regraded(grader, PROTOCOLS_RULE)
        grade_file(samples, paths.table(own.graded, STEP, name), folder.path / "problems", rules[name], grader)
        lines.append(_line(own, part, grader or f"{benchmarks.task_of(name)} verifier"))
    return lines + _lines_of_file(part)


def _problems_asked(part: Part) -> tuple[pa.Table, dict[str, Any] | None]:
    """The problem table to grade by, and the record of eval.subset where only part of the benchmark was asked."""
    ids, whole = {row["problem_id"] for row in part.rows}, len(part.problems)
    record = {"size": len(ids), "seed": None, "whole": whole}
    if len(ids) == whole:
        return part.problems, None
    if ids == set(part.problems["problem_id"].to_pylist()[: len(ids)]):
        return part.problems, record
    in_part = pc.is_in(part.problems["problem_id"], value_set=pa.array(sorted(ids)))
    return part.problems.filter(in_part), record | {"chosen": "elsewhere"}


def _graders(name: str) -> list[str | None]:
    """The graders of a benchmark's task, ours first; None for the task's own verifier."""
    graders: list[str | None] = list(registry.get(benchmarks.task_of(name)).graders)
    return graders if DEFAULT in graders else [None, *graders]


def _check_repeats(part: Part) -> None:
    """Raise UserError if problems have different numbers of completions."""
    counts = Counter(Counter(row["problem_id"] for row in part.rows).values())
    if len(counts) > 1:
        listed = ", ".join(f"{problems} problems have {number}" for number, problems in counts.most_common(4))
        raise UserError(
            f"{part.benchmark}: every problem should have as many completions, but {listed}: finish the generation, or "
            "give only the files that are whole",
            code="missing-samples",
            counts=dict(counts),
        )


def _line(folder: RunFolder, part: Part, grader: str) -> ScoreLine:
    """The score by one of our graders."""
    graded = tables.read(paths.table(folder.graded, STEP, part.benchmark), tables.GRADED)
    verdicts = graded["verdict"].to_pylist()
    right: dict[str, list[Any]] = {row["problem_id"]: [] for row in part.rows}
    for problem, verdict in zip(graded["problem_id"].to_pylist(), verdicts, strict=True):
        right[problem].append(verdict == "correct")
    reasons = [reason for reason in graded["finish_reason"].to_pylist() if reason is not None]
    cut = reasons.count("length") / len(reasons) if reasons else None
    silent = sum(verdict in ("no_answer", "format_error") for verdict in verdicts) / len(verdicts)
    return _estimated(part, grader, right)._replace(truncated=cut, silent=silent)


def _lines_of_file(part: Part) -> list[ScoreLine]:
    """The scores by the verdicts that the files have of every completion."""
    named = [row.get("verdicts") or {"verdict": row.get("right")} for row in part.rows]
    lines = []
    for metric in dict.fromkeys(chain.from_iterable(named)):
        right: dict[str, list[Any]] = {row["problem_id"]: [] for row in part.rows}
        for row, verdicts in zip(part.rows, named, strict=True):
            right[row["problem_id"]].append(verdicts.get(metric))
        if None not in chain.from_iterable(right.values()):
            lines.append(_estimated(part, OWN + metric, right))
    return lines


def _estimated(part: Part, grader: str, right: Mapping[str, Sequence[Any]]) -> ScoreLine:
    correct = np.array(list(right.values()), dtype=bool)
    estimate = statistics.avg_at_k(correct)
    problems, repeats = correct.shape
    return ScoreLine(part.benchmark, grader, *estimate, problems, repeats, len(part.problems))


def _score(folder: RunFolder) -> None:
    """Write the score tables of our verdicts, and of those of the other graders."""
    others = [RunFolder(path) for path in sorted((folder.path / "regraded").glob("*"))]
    for own in [folder, *others]:
        tables.write(score_run(own.graded, folder.path / "problems"), tables.SCORE, own.scores)
        provenance.write(own.scores, scored=[graded_record(path) for path in paths.tables(own.graded)])


def _are_copies(rows: Sequence[Any]) -> bool:
    """Whether every problem has several completions, all of the same text."""
    texts: dict[str, list[str]] = {}
    for row in rows:
        texts.setdefault(row["problem_id"], []).append(row["completion"])
    return all(len(each) > 1 and len(set(each)) == 1 for each in texts.values())


def _notes(
    rows: Sequence[Any], parts: Sequence[Part], others: Sequence[Path], rules: Mapping[str, str], request: Request
) -> list[str]:
    """What a reader has to know beside the scores."""
    notes = []
    for part in parts:
        if (count := len({row["problem_id"] for row in part.rows})) < len(part.problems):
            notes.append(
                f"{part.benchmark}: {count} of its {len(part.problems)} problems, so it is not the whole score"
            )
        if other := gold_differences(part.rows, part.problems)[1]:
            notes.append(f"{part.benchmark}: {other_golds_text(other)}; the benchmark's are used")
        if _are_copies(part.rows):
            notes.append(f"{part.benchmark}: the completions of each problem are the same text, so they count as one")
        if (rule := rules[part.benchmark]) != "none" and request.extraction is None:
            notes.append(
                f"{part.benchmark}: many completions have no box, so the answer is taken by {rule} there "
                "(--extraction none: boxes alone)"
            )
    if left := len(rows) - sum(len(part.rows) for part in parts):
        notes.append(f"left out: {left} generations of questions that are not recognised")
    if others:
        more = f" and {len(others) - LISTED} more" if len(others) > LISTED else ""
        notes.append(f"left out, no generations: {', '.join(path.name for path in others[:LISTED])}{more}")
    return notes
