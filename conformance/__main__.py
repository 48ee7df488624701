"""The same tensors through every installed framework's own functions, and polgrad's: `snakemake conformance`.

    python -m conformance --output FOLDER [--cases 10000] [--seed 0] [--framework NAME…]

Ends with an error where a framework differs from the reference in another way than conformance/differences.yaml says,
and where an error planted in a copy of a framework's function (conformance/mutants/) is not noticed. Minutes on two
cores; nothing is trained. FOLDER gets conformance.md, which is what is printed, and matrix.csv with the numbers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd

from conformance import rounding
from conformance.compare import TOLERANCE, Finding, Reference, framework_findings, tolerance, unnoticed_errors
from conformance.run_frameworks import INDEPENDENT, input_of_frameworks, installed_frameworks, run_cases
from system import durable
from system.command_line import argument_parser
from system.errors import UserError, run_command
from system.markdown import table
from system.text_safety import Markdown

DIFFERS = " ≠"


def matrix_table(results: Sequence[Finding], frameworks: Sequence[str]) -> str:
    """A Markdown table with aligned columns: for each formula and framework the largest difference in value / gradient
    / step, and ≠ where one is above the tolerance.

    Args:
        results: of all formulas and frameworks.
        frameworks: the columns.
    """

    def cell(one: Finding) -> str:
        if one.largest is None:
            return "cannot be expressed"
        return " / ".join(f"{part:.0e}" for part in one.largest) + DIFFERS * (max(one.largest) > tolerance(one.formula))

    cells = {(one.formula, one.framework): cell(one) for one in results}
    names = dict.fromkeys(one.formula for one in results)
    rows = [["formula", *frameworks], *([name, *(cells[name, each] for each in frameworks)] for name in names)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *body = [[Markdown(word.ljust(width)) for word, width in zip(row, widths, strict=True)] for row in rows]
    return table(head, body)


def matrix_frame(results: Sequence[Finding]) -> pd.DataFrame:
    """The matrix as a table: formula, framework, value, gradient, step (null where it cannot be expressed), and what
    the registry says that the framework computes."""
    return pd.DataFrame(
        [
            (one.formula, one.framework, *(one.largest or (None,) * 3), (one.entry or {}).get("what"))
            for one in results
        ],
        columns=["formula", "framework", "value", "gradient", "step", "registry"],
    )  # fmt: skip


def equal_rewards(results: Mapping[str, Mapping[str, Any]]) -> str:
    """A Markdown table: the largest advantage of groups of equal rewards in float32, by framework."""
    kinds = (rounding.GIVEN, rounding.ROUNDED)
    rows = ([kind, *(f"{rounding.largest_advantage(one, kind):.2g}" for one in results.values())] for kind in kinds)
    return table(["rewards", *results], rows)


def compare_frameworks(count: int, seed: int = 0, only: Collection[str] = ()) -> tuple[str, list[Finding], list[str]]:
    """The page, what was found of each formula and framework, and what is not as the registry says.

    Args:
        count: cases at least.
        seed: of their numbers.
        only: the frameworks to ask; by default all.

    Raises:
        UserError: no environment of a framework is built, or one of their processes failed.
    """
    frameworks = [name for name in installed_frameworks() if not only or name in only]
    if not (trainers := [name for name in frameworks if name != INDEPENDENT]):
        raise UserError(
            "no framework's environment is built; build one, such as with `python3.11 envs/build.py --help`",
            code="no-environment",
        )
    start, inputs = time.monotonic(), input_of_frameworks(count, seed)
    reference = Reference(inputs["formulas"], inputs["batches"], inputs["cases"])
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:  # each only waits for its framework's process
        outcomes = dict(zip(frameworks, pool.map(lambda name: run_cases(name, inputs), frameworks), strict=True))
    results = {name: one.results for name, one in outcomes.items()}
    spent = ", ".join(f"{name} {one.cpu_seconds:.0f}" for name, one in outcomes.items())
    comparisons = [one for name in frameworks for one in framework_findings(name, results[name][""], reference)]
    problems = [f"{one.framework}, {one.formula}: {one.problem}" for one in comparisons if one.problem]
    noticed = []
    for name in trainers:
        mutants = {one: results[name][one] for one in inputs["mutants"][name]}
        survivors = unnoticed_errors(name, mutants, reference)
        problems += [f"{name}: the planted error {one!r} is not noticed" for one in survivors]
        noticed.append(f"{name} {len(mutants) - len(survivors)} of {len(mutants)}")
    text = (
        f"{len(inputs['cases'])} cases through each framework in {time.monotonic() - start:.0f} s; "
        f"CPU seconds: {spent}. "
        "Largest difference from the reference in value / gradient / AdamW step, of max(1, |reference|); "
        f"≠: one is above {TOLERANCE:g}, or formulas.yaml's own.\n\n{matrix_table(comparisons, frameworks)}"
        "\nGroups of equal rewards in float32, largest advantage, which should be 0:\n\n"
        f"{equal_rewards({name: results[name] for name in trainers})}"
        f"\nPlanted errors that are noticed: {', '.join(noticed)}.\n"
    )
    return text, comparisons, problems


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--cases", type=int, default=10_000, metavar="NUMBER", help="at least so many in all; default: %(default)s"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the cases' numbers; default: %(default)s")
    parser.add_argument("--framework", nargs="+", default=[], metavar="NAME", help="only these; default: all installed")
    arguments = parser.parse_args()
    text, comparisons, problems = compare_frameworks(arguments.cases, arguments.seed, arguments.framework)
    durable.write_text(arguments.output / "conformance.md", text)
    durable.write_text(arguments.output / "matrix.csv", matrix_frame(comparisons).to_csv(index=False))
    print(f"{text}\n{arguments.output / 'conformance.md'}")
    if problems:
        raise UserError(
            "the frameworks are not as the registry (conformance/differences.yaml) says: " + "; ".join(problems),
            code="registry-is-wrong",
            problems=len(problems),
        )


if __name__ == "__main__":
    run_command(main)
