"""Whether the full-scale path runs on this GPU: one table, each row ok, left out, or its first error and what to do.

    make gpu-smoke                                        # snakemake gpu_smoke --config scale=full
    make gpu-smoke SMOKE="rows=evaluation,trl-colocated"  # some rows
    make test-smoke                                       # the same rows at demo scale, without a GPU

A model of 20 million random weights is evaluated, and trained by each framework, by the jobs of the workflow itself, in
a results folder of their own. Trainings with two checkpoints are killed after the first and resumed. It says that the
path runs, and nothing about recipes.
"""

from __future__ import annotations

import argparse
import datetime
import signal
import sys
from pathlib import Path

from cluster import doctor, machine
from cluster.gpu_smoke import table
from cluster.gpu_smoke.rows import INTERPRETERS, LOCKED, SmokeTest, row_names
from cluster.gpu_smoke.table import Row
from contracts import provenance
from contracts.run_file import SCALES
from system import durable
from system.command_line import argument_parser
from system.errors import ROOT, UserError, run_command


def check_gpu() -> None:
    """Raise UserError unless this machine's GPUs can run it."""
    problems = [finding for finding in doctor.check_gpus(machine.inspect_machine(ROOT)) if doctor.GPU in finding.stops]
    if problems:
        raise UserError(
            "; ".join(f"{problem.what}: {problem.text}" for problem in problems),
            code="unsuitable-gpu",
            problems=[problem.what for problem in problems],
        )


def parse_arguments(command_line: list[str] | None = None) -> argparse.Namespace:
    """The command line; raises UserError for a row that does not exist."""
    text, known = (__doc__ or "").split("\n")[0], row_names()
    parser = argument_parser(text)
    parser.add_argument("--scale", choices=SCALES, required=True, help="demo: without a GPU")
    parser.add_argument("--rows", default=",".join(known), help=f"of {', '.join(known)} (default: all)")
    parser.add_argument("--interpreter", choices=INTERPRETERS, default=LOCKED, help="of the environments, or this one")
    parser.add_argument("--minutes", type=float, default=15.0, help="for all rows, builds apart (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("work/gpu-smoke"), help="default: %(default)s")
    arguments = parser.parse_args(command_line)
    arguments.rows = arguments.rows.split(",")
    if unknown := [name for name in arguments.rows if name not in known]:
        sentence = f"rows: there is no row {', '.join(unknown)}; there are {', '.join(known)}"
        raise UserError(sentence, code="unknown-name", unknown=unknown)
    return arguments


def main() -> None:
    """Run the rows, print the table, and write it to the folder."""
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that what runs is ended, too
    if arguments.scale == "full":
        check_gpu()
    smoke = SmokeTest(arguments.folder.absolute(), arguments.scale, arguments.interpreter, arguments.minutes)
    page, rows = smoke.folder / "table.md", list[Row]()
    for name in arguments.rows:
        print(f"{name} …", flush=True)
        rows.append(smoke.run_row(name))
        print(f"{name}: {rows[-1].result}, {rows[-1].seconds:.0f} s; {'; '.join(rows[-1].remarks)}", flush=True)
        about = f"{smoke.about}; {datetime.date.today():%d %B %Y}; commit {provenance.collect()['git_commit']}"
        durable.write_text(page, table.page(rows, about))
    print(f"\n{page.read_text(encoding='utf-8')}\nWritten to {page}")
    if failed := [row.name for row in rows if row.result == table.WRONG]:
        sentence = f"{len(failed)} of {len(rows)} rows are wrong, see above: {', '.join(failed)}"
        raise UserError(sentence, code="rows-failed", rows=failed)


if __name__ == "__main__":
    run_command(main)
