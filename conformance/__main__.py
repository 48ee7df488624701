"""The same tensors through every installed framework's own functions: `snakemake conformance`.

    python -m conformance --output FOLDER [--cases 10000] [--mutants tests/contract/mutants]

Ends with an error where a framework differs from the reference in another way than conformance/differences.yaml says.
Minutes on two cores; nothing is trained. With --mutants also where an error planted in a framework's function (a file
for each framework, see frameworks/conformance.py) is not noticed. FOLDER gets conformance.md, which is what is printed,
and matrix.csv with the numbers.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd

from conformance import cases, rounding
from conformance.compare import TOLERANCE, Finding, Reference, findings, unnoticed
from conformance.run import installed, run
from contracts import durable
from contracts.errors import UserError, run_command
from contracts.markdown import table
from contracts.text_safety import Markdown
from contracts.yaml_files import read_yaml

DIFFERS = " ≠"


def matrix(found: Sequence[Finding], frameworks: Sequence[str]) -> str:
    """A Markdown table with aligned columns: for each formula and framework the largest difference in value / gradient
    / step, and ≠ where one is above the tolerance.

    Args:
        found: of all formulas and frameworks.
        frameworks: the columns.
    """

    def cell(one: Finding) -> str:
        if one.largest is None:
            return "cannot be expressed"
        return " / ".join(f"{part:.0e}" for part in one.largest) + DIFFERS * (max(one.largest) > TOLERANCE)

    cells = {(one.formula, one.framework): cell(one) for one in found}
    names = dict.fromkeys(one.formula for one in found)
    rows = [["formula", *frameworks], *([name, *(cells[name, each] for each in frameworks)] for name in names)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *body = [[Markdown(word.ljust(width)) for word, width in zip(row, widths, strict=True)] for row in rows]
    return table(head, body)


def numbers(found: Sequence[Finding]) -> pd.DataFrame:
    """The matrix as a table: formula, framework, value, gradient, step (null where it cannot be expressed), and what
    the registry says that the framework computes."""
    return pd.DataFrame(
        [
            (one.formula, one.framework, *(one.largest or (None,) * 3), (one.entry or {}).get("what"))
            for one in found
        ],
        columns=["formula", "framework", "value", "gradient", "step", "registry"],
    )  # fmt: skip


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--cases", type=int, default=10_000, metavar="NUMBER", help="at least so many in all; default: %(default)s"
    )
    parser.add_argument("--mutants", type=Path, metavar="FOLDER", help="files of errors to plant, <framework>.yaml")
    arguments = parser.parse_args()
    start = time.monotonic()
    if not (frameworks := installed()):
        raise UserError(
            "no framework's environment is built; build one, such as with `python3.11 envs/build.py --help`"
        )

    def planted(framework: str) -> list[str]:
        return ["--mutants", str(arguments.mutants.resolve() / f"{framework}.yaml")] if arguments.mutants else []

    formulas, (batches, pairs) = cases.formulas(), cases.cases(arguments.cases)
    reference = Reference(formulas, batches, pairs)
    given = {"formulas": formulas, "batches": batches, "cases": pairs, "float32": rounding.batches()}
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each only waits for its framework's process
        outcomes = dict(
            zip(frameworks, pool.map(lambda name: run(name, given, *planted(name)), frameworks), strict=True)
        )
    results = {name: one.results for name, one in outcomes.items()}
    spent = ", ".join(f"{name} {one.cpu_seconds:.0f}" for name, one in outcomes.items())
    found = [one for name in frameworks for one in findings(name, results[name][""], reference)]
    problems = [f"{one.framework}, {one.formula}: {one.problem}" for one in found if one.problem]
    text = (
        f"{len(pairs)} cases through each framework in {time.monotonic() - start:.0f} s; CPU seconds: {spent}. Largest "
        "difference from the reference in value / gradient / AdamW step, of max(1, |reference|); "
        f"≠: one is above {TOLERANCE}.\n\n"
        + matrix(found, frameworks)
        + "\nGroups of equal rewards in float32, largest advantage, which should be 0:\n\n"
        + table(
            ["rewards", *frameworks],
            (
                [kind, *(f"{rounding.largest(results[name], kind):.2g}" for name in frameworks)]
                for kind in (rounding.GIVEN, rounding.ROUNDED)
            ),
        )
    )
    if arguments.mutants:
        counts = []
        for name in frameworks:
            mutants = list(read_yaml(arguments.mutants / f"{name}.yaml"))
            survivors = unnoticed(name, {one: results[name][one] for one in mutants}, reference)
            problems += [f"{name}: the planted error {one!r} is not noticed" for one in survivors]
            counts.append(f"{name} {len(mutants) - len(survivors)} of {len(mutants)}")
        text += f"\nPlanted errors that are noticed: {', '.join(counts)}.\n"
    durable.write_text(arguments.output / "conformance.md", text)
    durable.write_text(arguments.output / "matrix.csv", numbers(found).to_csv(index=False))
    print(text)
    if problems:
        raise UserError(
            "the frameworks are not as the registry (conformance/differences.yaml) says: " + "; ".join(problems)
        )


if __name__ == "__main__":
    run_command(main)
