"""The same tensors through every installed framework's own functions: `snakemake conformance`.

    python -m conformance --output FOLDER [--cases 10000]

Ends with an error where a framework differs from the reference in another way than conformance/differences.yaml says.
Minutes on two cores; nothing is trained.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from conformance import cases, rounding
from conformance.compare import Finding, Reference, findings
from conformance.run import installed, run
from contracts import durable
from contracts.errors import UserError, run_command
from contracts.markdown import table

SAME = "–"


def matrix(found: Sequence[Finding], frameworks: Sequence[str]) -> str:
    """A Markdown table: for each formula and framework the largest difference in value / gradient / step.

    Args:
        found: of all formulas and frameworks.
        frameworks: the columns.
    """

    def cell(one: Finding) -> str:
        if one.largest is None:
            return "cannot be expressed"
        return " / ".join(SAME if part <= 1e-6 else f"{part:.0e}" for part in one.largest)

    cells = {(one.formula, one.framework): cell(one) for one in found}
    names = dict.fromkeys(one.formula for one in found)
    return table(["formula", *frameworks], ([name, *(cells[name, each] for each in frameworks)] for name in names))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--cases", type=int, default=10_000, metavar="NUMBER")
    arguments = parser.parse_args()
    start = time.monotonic()
    if not (frameworks := installed()):
        raise UserError(
            "no framework's environment is built; build one, such as with `python3.11 envs/build.py --help`"
        )
    formulas, (batches, pairs) = cases.formulas(), cases.cases(arguments.cases)
    reference = Reference(formulas, batches, pairs)
    given = {"formulas": formulas, "batches": batches, "cases": pairs, "float32": rounding.batches()}
    results = {name: run(name, given) for name in frameworks}
    found = [one for name in frameworks for one in findings(name, results[name][""], reference)]
    problems = [f"{one.framework}, {one.formula}: {one.problem}" for one in found if one.problem]
    text = (
        f"{len(pairs)} cases through {', '.join(frameworks)} in {time.monotonic() - start:.0f} s. Largest difference "
        f"from the reference in value / gradient / AdamW step, of max(1, |reference|); {SAME}: at most 1e-6.\n\n"
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
    durable.write_text(arguments.output / "conformance.md", text)
    print(text)
    if problems:
        raise UserError(
            "the registry of differences (conformance/differences.yaml) is not right: " + "; ".join(problems)
        )


if __name__ == "__main__":
    run_command(main)
