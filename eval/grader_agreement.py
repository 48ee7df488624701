"""How much the score depends on the grader: `crosszero graders --samples FILE… --output REPORT.md`.

Grades the same samples with every grader, compares them with the verdicts that imported samples came with, and lists
the disagreements: each with its class and, with --reference, the verdict of a person who reviewed it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from contracts import tables
from eval import benchmark, protocols
from eval.grade import extraction_of, single_value
from eval.importers.import_samples import read_verdicts
from eval.importers.missing_answers import MOST, lost_texts, rule_for, without_answer
from grading.disagreements import CLASSES, Disagreement, Reference, classify, read_reference
from grading.verdicts import Grade, Item, grade
from system import durable
from system.command_line import argument_parser
from system.errors import UserError, run_command
from system.markdown import table
from system.text_safety import Markdown, markdown_code

GRADERS = ("math-verify", "qwen-rules", "strict")  # of mathematics; other tasks have graders of their own
SIDES = ("math-verify", "qwen-rules", "recorded")  # whose verdicts are compared; `strict` is for the band alone


class Comparison(NamedTuple):
    """One benchmark: completions, percent correct per grader, and the disagreements."""

    benchmark: str
    completions: int
    scores: dict[str, float]
    disagreements: list[Disagreement]
    grades: dict[str, list[Grade]]
    recorded: float | None = None  # percent correct by the verdicts that came with the samples


def compare(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    recorded: Mapping[tuple[str, int], bool] | None = None,
    reference: Reference | None = None,
    extraction: str = "none",
    deadline_s: float = 5.0,
) -> Comparison:
    """Grade with every grader, and find where math-verify, qwen-rules and the recorded verdicts disagree.

    Args:
        name: the benchmark.
        rows: with problem_id, repeat, completion, gold, task, and if known finish_reason, meta.
        recorded: whether another harness called these completions right, by problem and repeat.
        reference: disagreements that a person reviewed.
        extraction: where math-verify and strict look for an answer without a box.
        deadline_s: seconds of a judge's CPU time for one pair of gold and answer.
    """
    items = [
        Item(row["task"], row["gold"], row["completion"] or "", row.get("finish_reason"), row.get("meta"),
             extraction)
        for row in rows
    ]  # fmt: skip
    grades = {grader: grade(items, grader=grader, deadline_s=deadline_s) for grader in GRADERS}
    scores = {
        grader: 100 * sum(result.verdict == "correct" for result in results) / len(items)
        for grader, results in grades.items()
    }
    disagreements = []
    for index, row in enumerate(rows):
        ours = {grader: results[index] for grader, results in grades.items()}
        verdicts = {grader: result.verdict for grader, result in ours.items()}
        if recorded and (row["problem_id"], row["repeat"]) in recorded:
            verdicts["recorded"] = "correct" if recorded[row["problem_id"], row["repeat"]] else "wrong"
        if len({verdicts[side] == "correct" for side in SIDES if side in verdicts}) > 1:
            answer = next((result.answer for result in ours.values() if result.answer is not None), "")
            known = reference.reviewed.get((name, row["problem_id"])) if reference else None
            kind, truth = known or (classify(row["gold"], ours), None)
            disagreements.append(Disagreement(name, row["problem_id"], row["gold"], answer, verdicts, kind, truth))
    own = [recorded[key] for row in rows if (key := (row["problem_id"], row["repeat"])) in recorded] if recorded else []
    return Comparison(name, len(items), scores, disagreements, grades, 100 * sum(own) / len(own) if own else None)


def class_table(disagreements: Sequence[Disagreement]) -> str:
    """Per class, the number of disagreements and, among the reviewed, how often each side is right."""
    sides = [side for side in SIDES if any(side in one.verdicts for one in disagreements)]
    rows = []
    for kind, meaning in [*CLASSES.items(), ("all", "")]:
        ours = [one for one in disagreements if kind in (one.kind, "all")]
        reviewed = [one for one in ours if one.truth]
        if ours:
            right = Counter(s for one in reviewed for s in sides if _right(one.verdicts.get(s)) == _right(one.truth))
            rows.append([kind, Markdown(meaning), len(ours), len(reviewed), *(right[side] for side in sides)])
    return table(["class", "meaning", "number", "reviewed", *(f"{side} right" for side in sides)], rows)


def _right(verdict: str | None) -> bool | None:
    return None if verdict is None else verdict == "correct"


def markdown(compared: Sequence[Comparison], reference: Reference | None = None) -> str:
    """The scores, the classes of disagreements, and the disagreements, as Markdown."""
    published = reference.published if reference else {}
    rows = []
    for one in compared:
        low, high = min(one.scores.values()), max(one.scores.values())
        published_score = f"{published[one.benchmark]:.1f}" if one.benchmark in published else ""
        recorded = "" if one.recorded is None else f"{one.recorded:.1f}"
        scores = [f"{one.scores[grader]:.1f}" for grader in GRADERS]
        rows.append([one.benchmark, one.completions, *scores, f"{low:.1f}–{high:.1f}", published_score, recorded])
    disagreements = [disagreement for one in compared for disagreement in one.disagreements]
    scored = table(["benchmark", "completions", *GRADERS, "band", "published", "recorded"], rows)
    listed = table(
        ["benchmark", "problem", "gold", "answer", *SIDES, "class", "truth"],
        [
            [one.benchmark, one.problem_id, markdown_code(one.gold[:70]), markdown_code(one.answer[:70]),
             *(one.verdicts.get(side, "") for side in SIDES), one.kind, one.truth or "not reviewed"]
            for one in disagreements
        ],
    )  # fmt: skip
    count = f"math-verify, qwen-rules and the recorded verdicts disagree on {len(disagreements)} completions:"
    return f"{scored}\n{count}\n\n{class_table(disagreements)}\n{listed}"


def read_rows(path: Path, data: Path | None) -> tuple[str, list[dict[str, Any]]]:
    """The benchmark and the samples of a table; with `data`, task, meta and gold are those of its problems."""
    whole = tables.read(path, tables.SAMPLE)
    name, samples = str(single_value(whole, "benchmark", path)), whole.to_pylist()
    if data is None:
        return name, [{**row, "task": benchmark.task_of(name)} for row in samples]
    problems = {problem["problem_id"]: problem for problem in benchmark.problems(data, name).to_pylist()}
    if lost := [row["problem_id"] for row in samples if row["problem_id"] not in problems]:
        raise UserError(
            f"{len(lost)} samples in {path} are of problems that {data / name}.parquet does not have, such as "
            f"{lost[0]}: import them with --problems, or leave out --data to grade by the golds that came with them",
            code="other-problems",
            count=len(lost),
        )
    return name, [
        {**row, "gold": problem["answer"], "task": problem["task"], "meta": problem["meta"]}
        for row in samples
        for problem in [problems[row["problem_id"]]]
    ]


def rule_of_samples(path: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The extraction rule of a table's protocol; for imported samples, that which finds most answers; it is printed.

    A rule that finds few is said, too: the scores then say little.
    """
    whole, completions = tables.read(path, tables.SAMPLE), [row["completion"] for row in rows]
    if single_value(whole, "protocol", path) in protocols.names():
        rule = extraction_of(whole, path, None)
    else:
        rule = rule_for(completions, benchmark.task_of(name))
    lost, _ = lost_texts(completions, benchmark.task_of(name), rule)
    print(f"{path}: answers are looked for in a box{'' if rule == 'none' else f' or by {rule}'}", file=sys.stderr)
    if len(lost) > MOST * len(rows):
        print(f"{path}: {without_answer(completions, benchmark.task_of(name), rule)}", file=sys.stderr)
    return rule


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--samples", type=Path, nargs="+", required=True, help="sample tables (eval.importers makes them)"
    )
    parser.add_argument("--data", type=Path, help="folder of the benchmarks' problem tables: units, tolerances, golds")
    parser.add_argument("--reference", type=Path, help="YAML with published scores and reviewed disagreements")
    protocols.add_extraction_option(
        parser,
        None,
        "where to look for an answer without a box (default: by the protocol, or where most answers stand)",
    )
    parser.add_argument("--output", type=Path, required=True, help="the report to write (Markdown)")
    arguments = parser.parse_args()
    reference = read_reference(arguments.reference) if arguments.reference else None
    compared = []
    for path in arguments.samples:
        name, rows = read_rows(path, arguments.data)
        rule = arguments.extraction or rule_of_samples(path, name, rows)
        compared.append(compare(name, rows, recorded=read_verdicts(path), reference=reference, extraction=rule))
    report = markdown(compared, reference)
    durable.write_text(arguments.output, report)
    scores, _, classes, *_ = report.split("\n\n")
    print(f"{scores}\n\n{classes}\n\nevery disagreement is in {arguments.output}")


if __name__ == "__main__":
    run_command(main)
