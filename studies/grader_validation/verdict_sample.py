"""A random sample of verdicts, to be read by a person: how often is the grader wrong, and how?

    crosszero study grader_validation verdict_sample --graded graded --data data [--each 200] [--seed 0]

prints, of each verdict "correct" and anything else, so many completions: the end of the problem, the gold answer, the
extracted one, and the end of the completion. With --review FILE it prints the rates of mistakes that a person found
among them instead (results/reference/verdicts has such files), with 95 % intervals.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy import stats

from contracts import paths, tables
from eval import benchmark
from system.command_line import argument_parser
from system.errors import UserError, run_command
from system.text_safety import one_line
from system.yaml_files import read_yaml

COLUMNS = ["benchmark", "problem_id", "repeat", "completion", "gold", "answer", "verdict", "grader"]
SHOWN = {"problem": 300, "gold": 200, "answer": 200, "completion": 160}  # characters of the end
KINDS = ("correct", "wrong")  # `wrong` stands for every verdict that counts as not correct


def draw(rows: Sequence[dict[str, Any]], each: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    """So many rows with the verdict correct, and with another one, drawn by a hash of the seed and their names.

    So a verdict that changes changes the draw of no other.

    Args:
        rows: graded completions (GRADED), in any order.
        each: how many of both; all where there are fewer.
        seed: of the draw.
    """
    ordered = sorted(rows, key=lambda row: hashlib.sha256(f"{seed} {_name(row)}".encode()).digest())
    return {
        kind: [row for row in ordered if (row["verdict"] == "correct") == (kind == "correct")][:each] for kind in KINDS
    }


def _name(row: dict[str, Any]) -> str:
    return f"{row['benchmark']} {row['problem_id']} repeat {row['repeat']}"


def text(row: dict[str, Any], question: str) -> str:
    """A drawn completion for a reader."""
    parts = {"problem": question, "gold": row["gold"], "answer": row["answer"] or "–", "completion": row["completion"]}
    lines = [f"  {name:<10} {one_line(value or '')[-SHOWN[name] :]}" for name, value in parts.items()]
    return "\n".join([f"{_name(row)}: {row['verdict']}", *lines])


def rate(mistakes: int, read: int, confidence: float = 0.95) -> tuple[float, float, float]:
    """The share of mistakes and its exact interval (Clopper and Pearson 1934, Biometrika 26:404)."""
    interval = stats.binomtest(mistakes, read).proportion_ci(confidence, method="exact")
    return mistakes / read, float(interval.low), float(interval.high)


def review(drawn: dict[str, list[dict[str, Any]]], path: Path) -> str:
    """Rates of the mistakes in a review: of "correct" verdicts (false positives), and of the others (false negatives).

    Args:
        drawn: as `draw` gives them.
        path: a YAML file with `mistakes`, a list of [benchmark, problem_id, kind of mistake].

    Raises:
        UserError: a mistake is not among the drawn completions.
    """
    try:
        mistakes = {(str(name), str(problem)): str(kind) for name, problem, kind in read_yaml(path)["mistakes"]}
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} should have mistakes: [[benchmark, problem, kind], …], but has not: {error}", code="invalid-review"
        ) from None
    lines = []
    for kind, name in zip(KINDS, ("false positives", "false negatives"), strict=True):
        keys = [(row["benchmark"], str(row["problem_id"])) for row in drawn[kind]]
        kinds = Counter(mistakes.pop(key) for key in keys if key in mistakes)
        value, low, high = rate(kinds.total(), len(keys))
        listed = "".join(f"; {count} {what}" for what, count in kinds.most_common())
        lines.append(
            f"{name}: {kinds.total()} of {len(keys)}, {100 * value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]{listed}"
        )
    if mistakes:
        raise UserError(
            f"{path} lists {', '.join(map(' '.join, mistakes))}, which were not drawn; check --graded and --seed",
            code="unknown-mistakes",
        )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--graded", type=Path, required=True, help="folder of graded tables (eval.grade)")
    parser.add_argument("--data", type=Path, required=True, help="folder of the benchmarks' problem tables")
    parser.add_argument("--each", type=int, default=200, help="completions of each kind (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--review", type=Path, help="mistakes that a person found among them (YAML)")
    arguments = parser.parse_args()
    table_files = paths.tables(arguments.graded) or sorted(arguments.graded.glob("*.parquet"))
    if not table_files:
        raise UserError(
            f"{arguments.graded} should hold graded tables but has none; grade the samples first", code="missing-table"
        )
    rows = [row for path in table_files for row in tables.read(path, tables.GRADED).select(COLUMNS).to_pylist()]
    drawn = draw(rows, arguments.each, arguments.seed)
    if arguments.review:
        print(review(drawn, arguments.review))
        return
    questions = {path.stem: benchmark.questions(arguments.data, path.stem) for path in table_files}
    for kind in KINDS:
        for number, row in enumerate(drawn[kind], start=1):
            print(f"{number} {text(row, questions[row['benchmark']][row['problem_id']])}")


if __name__ == "__main__":
    run_command(main)
