"""How often graders agree with labels on pairs of gold answer and answer, false positives and negatives apart.

    crosszero study grader_validation pair_agreement [--pairs FILE.jsonl | --tests FOLDER | --each 40] \\
        [--math-verify FOLDER…]

The pairs are those that answer_pairs.py generates, or of a file with lines {"kind", "gold", "answer", "right"}, or of
math-verify's own tests (the folder `tests` of its repository). Every grader gets the same input, the answer in a box.
`math-verify alone` is the package without this project, as installed and from each FOLDER that has another release
(`pip install --target FOLDER math-verify==0.9.0`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from eval import benchmark
from grading import Item, grade
from studies.grader_validation import math_verify_pairs
from studies.grader_validation.answer_pairs import AnswerPair, pairs
from system import json_lines
from system.command_line import argument_parser
from system.errors import UserError, run_command
from system.markdown import table
from tasks import registry

TOGETHER = "together"
ALONE = """
import importlib.metadata, json, logging, sys
from math_verify import parse, verify
logging.disable(logging.CRITICAL)
right = []
for gold, answer in json.load(sys.stdin):
    try:
        right.append(bool(verify(parse("$" + gold + "$"), parse("\\\\boxed{" + answer + "}"))))
    except Exception:
        right.append(False)
json.dump([importlib.metadata.version("math-verify"), right], sys.stdout)
"""


def alone(chosen: Sequence[AnswerPair], folder: Path | None) -> tuple[str, list[bool]]:
    """The version of math-verify, and which answers it takes for right."""
    path = os.pathsep.join([*([str(folder.resolve())] if folder else []), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", ALONE], input=json.dumps([(one.gold, one.answer) for one in chosen]), text=True,
        stdout=subprocess.PIPE, check=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    version, right = json.loads(done.stdout)
    return version, right


def agreement(chosen: Sequence[AnswerPair], verdicts: Mapping[str, Sequence[bool]]) -> str:
    """A table with a row per class and, per grader, `agreement % (false positives, false negatives)`.

    Args:
        chosen: labelled pairs.
        verdicts: per grader, whether it takes each answer for right.
    """
    rows = []
    for kind in [*dict.fromkeys(one.kind for one in chosen), TOGETHER]:
        indices = [index for index, one in enumerate(chosen) if kind in (one.kind, TOGETHER)]
        cells = []
        for right in verdicts.values():
            positives = sum(right[index] and not chosen[index].right for index in indices)
            negatives = sum(chosen[index].right and not right[index] for index in indices)
            share = 100 * (1 - (positives + negatives) / len(indices))
            cells.append(f"{share:.1f} ({positives}, {negatives})")
        rows.append([kind, len(indices), *cells])
    return table(["class", "pairs", *verdicts], rows)


def read(path: Path) -> list[AnswerPair]:
    """The pairs of a file."""
    try:
        return [
            AnswerPair(row["kind"], row["gold"], row["answer"], bool(row["right"])) for row in json_lines.read(path)
        ]
    except KeyError as error:
        raise UserError(
            f"{path} should have kind, gold, answer and right in every line, but {error} is missing",
            code="invalid-pairs",
        ) from None


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--pairs", type=Path, help="labelled pairs (JSON Lines); by default generated ones")
    source.add_argument("--tests", type=Path, help="the folder `tests` of math-verify's repository")
    parser.add_argument("--each", type=int, default=40, help="generated pairs of each class (default: 40)")
    parser.add_argument(
        "--math-verify", type=Path, nargs="+", default=[], help="folders with other releases of math-verify"
    )
    arguments = parser.parse_args()
    if arguments.tests:
        chosen, left = math_verify_pairs.read(arguments.tests)
        print(f"Left out: {left} pairs of which a side is prose\n")
    else:
        chosen = read(arguments.pairs) if arguments.pairs else pairs(arguments.each)
    task = benchmark.task_of("math500")
    items = [Item(task, one.gold, f"\\boxed{{{one.answer}}}") for one in chosen]
    verdicts: dict[str, Sequence[bool]] = {
        ("ours" if name == "math-verify" else name): [one.verdict == "correct" for one in grade(items, grader=name)]
        for name in registry.get(task).graders
    }
    for folder in (None, *arguments.math_verify):
        version, right = alone(chosen, folder)
        verdicts[f"math-verify {version} alone"] = right
    print("Agreement with the labels in percent (false positives, false negatives)\n")
    print(agreement(chosen, verdicts))


if __name__ == "__main__":
    run_command(main)
