"""Load a training set or a benchmark, check that it is what the registry says, and write it as a PROBLEM table.

    crosszero problems gsm8k --output gsm8k.parquet --data-mirror ../mirror
    crosszero problems math_lighteval --output math_lighteval.parquet

With --data-mirror the files come from that folder; without it, from the hub at the pinned commit or, for sets that are
not on the hub, from their repository. Takes seconds, and longer for NuminaMath-TIR's 150 MB.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contracts import provenance, tables
from system.command_line import argument_parser
from system.errors import UserError, run_command
from tasks import dataset_sources, dataset_specs, registry
from tasks.dataset_specs import Entry
from tasks.problems import Problem, content_digest, repeated_questions, rows_digest, to_table, with_same_beginning
from tasks.row_sampling import sample_rows


def load(entry: Entry, mirror: Path | None) -> tuple[list[Problem], dict[str, Any]]:
    """The entry's problems that have a gold answer, and the facts for the provenance.

    Args:
        entry: what to load.
        mirror: a folder with its files, or None to load it from the hub or its address.

    Raises:
        UserError: the source cannot be reached or read, or does not hold what the registry says.
    """
    problems, source = _generate(entry) if "generate" in entry.spec else _read_source(entry, mirror)
    graded = [problem for problem in problems if problem.answer is not None]
    if (stated := entry.spec.get("problems", len(graded))) != len(graded):
        raise UserError(
            f"{entry.name} should have {stated:,} rows with a gold answer ({entry.where}), not {len(graded):,}",
            code="other-number-of-rows",
            dataset=entry.name,
            rows=len(graded),
        )
    content, known = content_digest(problems), entry.spec.get("content_sha256")
    facts = {
        "dataset": entry.name,
        "registry": entry.where,
        "source": source,
        "rows": len(problems),
        "problems": len(graded),
        "distinct_questions": len(problems) - sum(len(group) - 1 for group in repeated_questions(problems)),
        "levels": _count_levels(problems),
        "content_sha256": content,
        "same_content_as_registered": None if known is None else content == known,
        "without_gold_answer": [problem.problem_id for problem in problems if problem.answer is None],
        "repeated_questions": repeated_questions(graded),
    }
    return graded, facts


def _generate(entry: Entry) -> tuple[list[Problem], dict[str, Any]]:
    """Problems of a task that makes its own: `generate` has the arguments of its generator."""
    task, arguments = entry.spec["task"], dict(entry.spec["generate"])
    try:
        problems = registry.get(task).generate(rows=entry.spec["rows"], **arguments)
    except TypeError as error:
        raise UserError(
            f"{entry.where}, {entry.name}: the task {task} cannot generate it: {error}",
            code="unknown-generator-argument",
            dataset=entry.name,
        ) from None
    return problems, {"kind": "generated", "task": task, **arguments}


def _read_source(entry: Entry, mirror: Path | None) -> tuple[list[Problem], dict[str, Any]]:
    """Problems of the entry's files or hub set, with the registered number of rows and hashes."""
    spec = entry.spec
    from_hub = mirror is None and "hub" in spec
    rows, source = dataset_sources.from_hub(entry) if from_hub else dataset_sources.from_files(entry, mirror)
    read_from = _source_text(source, mirror)
    stated = spec["sample"]["source_rows"] if "sample" in spec else spec["rows"]
    if len(rows) != stated:
        raise UserError(
            f"{entry.name} should have {stated:,} rows ({entry.where}), but {read_from} has {len(rows):,}",
            code="other-number-of-rows",
            dataset=entry.name,
            rows=len(rows),
        )
    held = spec["hub"] if source["kind"] == "hub" else spec
    if raw := spec.get("raw_sha256"):
        _check_hash(entry, read_from, raw["sha256"], rows_digest([row[c] for c in raw["columns"]] for row in rows))
    if "sample" in spec:
        rows = _sampled_part(entry, rows, read_from)
    problems = _convert_rows(
        entry, rows, {**spec, **{k: held[k] for k in ("convert", "columns") if k in held}}, read_from
    )
    ids = json.dumps([problem.problem_id for problem in problems])
    _check_hash(entry, read_from, spec.get("sample", {}).get("ids_sha256"), hashlib.sha256(ids.encode()).hexdigest())
    _check_hash(entry, read_from, held.get("content_sha256"), content_digest(problems))
    if "cluster" in spec:
        problems = with_same_beginning(problems, spec["cluster"]["same_beginning"])
    return problems, source


def _sampled_part(entry: Entry, rows: dataset_sources.Rows, read_from: str) -> dataset_sources.Rows:
    """The part of the source that the entry samples."""
    stated, wanted = entry.spec["sample"], entry.spec["rows"]
    try:
        groups = [row[stated["by"]] for row in rows]
        places = sample_rows(groups, one_in=stated["one_in"], rows=wanted, seed=stated["seed"])
    except (KeyError, ValueError) as error:
        raise UserError(
            f"{entry.name} should be {wanted:,} rows of {read_from}, one in {stated['one_in']} of each group of the "
            f"column {stated['by']}, but sampling them fails ({type(error).__name__}: {error}): correct `sample` in "
            f"{entry.where}",
            code="rows-not-sampled",
            dataset=entry.name,
        ) from None
    return [rows[index] for index in places]


def _count_levels(problems: Sequence[Problem]) -> dict[str, int]:
    """Problems of each level of difficulty, where the data set states levels."""
    counts = Counter(str(problem.meta["level"]) for problem in problems if problem.meta.get("level") is not None)
    return dict(sorted(counts.items()))


def _source_text(source: dict[str, Any], mirror: Path | None) -> str:
    if source["kind"] == "generated":
        return f"the generator of {source['task']}"
    if source["kind"] == "hub":
        return f"{source['path']} ({source['split']}) at {source['revision']}"
    return " + ".join(str(mirror / file["file"]) if mirror else file["url"] for file in source["files"])


def _check_hash(entry: Entry, read_from: str, expected: str | None, actual: str) -> None:
    if expected is not None and expected != actual:
        raise UserError(
            f"{entry.name} should have content with hash {expected} ({entry.where}), but {read_from} has {actual}: the "
            "rows differ from those that the published figures were made with",
            code="other-content",
            dataset=entry.name,
            sha256=actual,
        )


def _convert_rows(entry: Entry, rows: dataset_sources.Rows, spec: dict[str, Any], read_from: str) -> list[Problem]:
    name = f"tasks.{spec['task']}.{spec['convert']}" if "convert" in spec else "tasks.row_converter"
    try:
        converter = importlib.import_module(name)
    except ModuleNotFoundError:
        raise UserError(
            f"{entry.where}, {entry.name}: `convert` names {name}, and there is no such module",
            code="missing-module",
            module=name,
        ) from None
    problems = []
    for index, row in enumerate(rows):
        try:
            problems.append(converter.convert(row, index, spec["task"], spec.get("columns") or {}))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise UserError(
                f"row {index} of {read_from} is not as {entry.where} describes {entry.name} "
                f"({type(error).__name__}: {error}); its columns are {', '.join(row)}",
                code="row-not-as-described",
                dataset=entry.name,
                row=index,
            ) from None
    seen: dict[str, int] = {}
    for index, problem in enumerate(problems):
        if problem.problem_id in seen:
            raise UserError(
                f"rows {seen[problem.problem_id]} and {index} of {read_from} have the same id {problem.problem_id}: "
                f"name another column in `columns.id` of {entry.name} in {entry.where}, or leave it out",
                code="repeated-problem-id",
                dataset=entry.name,
                problem_id=problem.problem_id,
            )
        seen[problem.problem_id] = index
    return problems


def report(facts: dict[str, Any], mirror: Path | None) -> str:
    """What was loaded, and what a reader should know about it, in a few lines."""
    lines = [f"{facts['dataset']}: {facts['problems']:,} problems from {_source_text(facts['source'], mirror)}"]
    levels = "".join(f"; level {level}: {count:,}" for level, count in facts["levels"].items())
    lines.append(f"  {facts['rows']:,} rows, {facts['distinct_questions']:,} distinct questions{levels}")
    if missing := facts["without_gold_answer"]:
        listed = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        lines.append(f"  {len(missing):,} of {facts['rows']:,} rows have no gold answer and are left out: {listed}")
    if groups := facts["repeated_questions"]:
        extra = sum(len(group) - 1 for group in groups)
        listed = "; ".join(" = ".join(group) for group in groups[:3]) + ("; …" if len(groups) > 3 else "")
        lines.append(f"  {extra:,} rows repeat the question of an earlier one and are kept: {listed}")
    if facts["same_content_as_registered"] is False:
        lines.append(
            "  its (question, answer) pairs differ from those of the registered files: their hash is "
            f"{facts['content_sha256']}, so compare scores with care"
        )
    if hint := facts["source"].get("hint"):
        lines.append(f"  {hint}")
    return "\n".join(lines)


def main() -> None:
    """Command line: NAME --output FILE [--data-mirror DIR]."""
    parser = argument_parser(__doc__)
    parser.add_argument("name", help="a training set (tasks/*/task.yaml) or benchmark (eval/benchmarks)")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the Parquet file to write")
    parser.add_argument(
        "--data-mirror", "--mirror", dest="mirror", type=Path, metavar="DIR", help="read from this folder"
    )
    arguments = parser.parse_args()
    problems, facts = load(dataset_specs.find(arguments.name), arguments.mirror)
    tables.write(to_table(problems), tables.PROBLEM, arguments.output)
    provenance.write(arguments.output, **facts)
    print(report(facts, arguments.mirror))


if __name__ == "__main__":
    run_command(main)
