"""How far the score depends on the grader: `python -m eval.grading.compare --samples FILE… --output REPORT.md`.

Grades the same samples with every grader, and lists what they disagree about with a class for each disagreement.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from contracts import tables
from contracts.errors import UserError, run_command
from eval.grading.grade import GRADERS, Grade, Item, grade
from eval.importers.formats import json_lines

CLASSES = (
    ("bad gold", "the gold answer cannot be read"),
    ("time-out", "no verdict within the deadline"),
    ("last number", "nothing is boxed; the last number was taken for the answer"),
    ("scientific notation", "`1e-5`, which is read as 1·e - 5 if not looked for"),
    ("matrix", "a matrix or column vector, whose cells one grader does not compare"),
    ("text or unit", "words or a unit in one of the two, which one grader drops"),
    ("percent or factor 100", "one is a hundred times the other"),
    ("rounding", "the same number to 1e-4"),
    ("equation", "an equation, of which one grader compares a side"),
    ("several answers", "tuples, sets, intervals, lists: order or brackets"),
    ("writing", "the same expression in another form"),
)


class Disagreement(NamedTuple):
    """A completion on which graders differ."""

    benchmark: str
    problem_id: str
    gold: str
    answer: str
    verdicts: dict[str, str]
    kind: str


def _number(text: str) -> float | None:
    text = re.sub(r"\\times10\^\{?(-?\d+)\}?", r"e\1", re.sub(r"\s|\\[%$!,]|[%$]", "", text)).replace(",", "")
    fraction = re.fullmatch(r"(-?)\\d?frac\{(-?\d+)\}\{(\d+)\}", text)
    try:
        return (-1 if fraction[1] else 1) * int(fraction[2]) / int(fraction[3]) if fraction else float(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def classify(gold: str, grades: Mapping[str, Grade]) -> str:
    """The class of a disagreement, one of CLASSES, tried in their order."""
    answers = {name: result.answer for name, result in grades.items()}
    answer = next((text for text in answers.values() if text is not None), "")
    if grades["math-verify"].verdict == "ungradable":
        return "time-out" if gold.strip() and gold.count("{") == gold.count("}") else "bad gold"
    if len(set(answers.values())) > 1:
        return "last number"
    if "%" in gold + answer:
        return "percent or factor 100"
    expected, found = _number(gold), _number(answer)
    if expected and found:
        if any(abs(found / expected - factor) < 1e-3 * factor for factor in (100, 0.01)):
            return "percent or factor 100"
        if re.fullmatch(r"[-+]?[\d.]+[eE][-+]?\d+", gold.strip()):
            return "scientific notation"
        if abs(found / expected - 1) < 1e-3:
            return "rounding"
    if re.fullmatch(r"[-+]?[\d.]+[eE][-+]?\d+", gold.strip()):
        return "scientific notation"
    if "matrix" in gold + answer:
        return "matrix"
    if any(re.search(r"\\(text|mathrm|mbox)|\\circ|[a-z]{4}", re.sub(r"\\[a-z]+", "", text)) or "\\text" in text
           or "\\circ" in text or "\\mathrm" in text for text in (gold, answer)):  # fmt: skip
        return "text or unit"
    if "=" in gold or "=" in answer:
        return "equation"
    return "several answers" if "," in gold or "," in answer or "cup" in gold else "writing"


def compare(
    benchmark: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    recorded: Sequence[bool] | None = None,
    deadline_s: float = 5.0,
) -> tuple[dict[str, float], list[Disagreement], dict[str, list[Grade]]]:
    """Score per grader (percent correct), the disagreements on being right, and all grades.

    Args:
        benchmark: named in the disagreements.
        rows: with problem_id, completion, gold, and if known finish_reason, task, meta.
        recorded: what another grader said of the same completions.
        deadline_s: seconds for one pair.
    """
    items = [
        Item(row.get("task") or "math", row["gold"], row["completion"] or "", row.get("finish_reason"), row.get("meta"))
        for row in rows
    ]
    grades = {name: grade(items, grader=name, deadline_s=deadline_s) for name in GRADERS}
    scores = {
        name: 100 * sum(result.verdict == "correct" for result in results) / len(items)
        for name, results in grades.items()
    }
    found = []
    for index, row in enumerate(rows):
        ours = {name: results[index] for name, results in grades.items()}
        # `strict` differs whenever an answer is written otherwise: that is its band, not a disagreement to look at
        judged = {ours[name].verdict == "correct" for name in ("math-verify", "qwen-rules")}
        verdicts = {name: result.verdict for name, result in ours.items()}
        if recorded is not None:
            judged.add(recorded[index])
            verdicts["recorded"] = "correct" if recorded[index] else "wrong"
        if len(judged) > 1:
            answer = next((result.answer for result in ours.values() if result.answer is not None), "")
            kind = classify(row["gold"], ours)
            found.append(Disagreement(benchmark, str(row["problem_id"]), row["gold"], answer, verdicts, kind))
    return scores, found, grades


def _cell(text: str) -> str:
    return "`" + re.sub(r"[|`\s]+", " ", text[:70]) + "`"


def markdown(rows: Sequence[tuple[str, int, Mapping[str, float], float | None]], found: Sequence[Disagreement]) -> str:
    """The scores (benchmark, completions, score per grader, published score) and disagreements as Markdown."""
    lines = [
        "| benchmark | completions | " + " | ".join(GRADERS) + " | band | published |",
        "|---" * (len(GRADERS) + 4) + "|",
    ]
    for benchmark, count, scores, published in rows:
        cells = [f"{scores[name]:.1f}" for name in GRADERS]
        band = f"{min(scores.values()):.1f}–{max(scores.values()):.1f}"
        shown = "" if published is None else f"{published:.1f}"
        lines.append(f"| {benchmark} | {count} | {' | '.join(cells)} | {band} | {shown} |")
    kinds = Counter(one.kind for one in found)
    lines += [
        "",
        f"math-verify, qwen-rules (and what was recorded) disagree on {len(found)} completions:",
        "",
        "| class | meaning | number |",
    ]
    lines += ["|---|---|---|", *(f"| {kind} | {text} | {kinds[kind]} |" for kind, text in CLASSES if kinds[kind])]
    lines += [
        "",
        "| benchmark | problem | gold | answer | math-verify | qwen-rules | recorded | class |",
        "|---" * 8 + "|",
    ]
    for one in found:
        verdicts = " | ".join(one.verdicts.get(name, "") for name in ("math-verify", "qwen-rules", "recorded"))
        answers = f"{_cell(one.gold)} | {_cell(one.answer)}"
        lines.append(f"| {one.benchmark} | {one.problem_id} | {answers} | {verdicts} | {one.kind} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--samples", type=Path, nargs="+", required=True, help="sample tables (eval.importers makes them)"
    )
    parser.add_argument("--published", default="{}", help='JSON, the scores published of them: {"gsm8k": 84.8}')
    parser.add_argument(
        "--recorded", type=Path, nargs="+", help="the harness's own files (qwen-math), in the same order: its verdicts"
    )
    parser.add_argument("--output", type=Path, required=True, help="the report to write (Markdown)")
    arguments = parser.parse_args()
    published = json.loads(arguments.published)
    rows, found = [], []
    if arguments.recorded and len(arguments.recorded) != len(arguments.samples):
        raise UserError(f"--recorded should name {len(arguments.samples)} files, one for each of --samples")
    for index, path in enumerate(arguments.samples):
        samples = tables.read(path, tables.SAMPLE).to_pylist()
        benchmark = samples[0]["benchmark"]
        recorded = None
        if arguments.recorded:
            recorded = [bool(score) for row in json_lines(arguments.recorded[index]) for score in row["score"]]
            if len(recorded) != len(samples):
                raise UserError(f"{arguments.recorded[index]} should hold {len(samples)} scores, not {len(recorded)}")
        scores, disagreements, _ = compare(benchmark, samples, recorded=recorded)
        rows.append((benchmark, len(samples), scores, published.get(benchmark)))
        found += disagreements
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(markdown(rows, found), encoding="utf-8")
    print(f"{len(found)} disagreements on {sum(row[1] for row in rows)} completions, in {arguments.output}")


if __name__ == "__main__":
    run_command(main)
