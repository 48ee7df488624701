"""Whether the full-scale path runs on this GPU: one table, each row ok, left out, or its first error and what to do.

    make gpu-smoke                                              # builds what is missing of the GPU environments first
    make gpu-smoke SMOKE="--row evaluation trl-colocated"       # some rows
    python -m cluster.gpu_smoke --python here                   # with this interpreter's packages, such as an image's

A model of 20 million random weights is generated from, evaluated, and trained by each framework with the project's own
commands; trainings with two checkpoints are killed after the first and resumed. It says that the path runs, and nothing
about recipes. `--device cpu` runs the same commands without a GPU, at demo scale.
"""

from __future__ import annotations

import argparse
import datetime
import signal
import sys
from pathlib import Path

from cluster import doctor, machine
from cluster.gpu_smoke import commands, table
from cluster.gpu_smoke.commands import HERE, LOCKED, Place, row_of
from cluster.gpu_smoke.smoke import DEVICE, EVALUATION, Smoke
from cluster.gpu_smoke.table import Row
from contracts import provenance
from system import durable
from system.errors import ROOT, UserError, run_command


def check_gpu() -> None:
    """Raise UserError unless this machine's GPUs can run it."""
    wrong = [found for found in doctor.check_gpus(machine.look(ROOT)) if doctor.GPU in found.stops]
    if wrong:
        raise UserError("; ".join(f"{found.what}: {found.text}" for found in wrong))


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    """The command line; raises UserError for a row that does not exist."""
    text = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m cluster.gpu_smoke", description=text)
    known = [DEVICE, EVALUATION, *(row_of(run) for run in commands.runs("full"))]
    parser.add_argument("--row", nargs="+", default=known, metavar="ROW", help=f"of {', '.join(known)} (default: all)")
    parser.add_argument(
        "--python", choices=(LOCKED, HERE), default=LOCKED, help="of the locked environments, or this one"
    )
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="cpu: the same commands at demo scale"
    )
    parser.add_argument("--no-build", action="store_true", help="leave out rows whose environment is not built")
    parser.add_argument("--minutes", type=float, default=10.0, help="for all rows, builds apart (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("work/gpu-smoke"), help="default: %(default)s")
    arguments = parser.parse_args(words)
    if unknown := [name for name in arguments.row if name not in known]:
        raise UserError(f"--row: there is no row {', '.join(unknown)}; there are {', '.join(known)}")
    return arguments


def main() -> None:
    """Run the rows, print the table, and write it to the folder."""
    arguments = arguments_of()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that what runs is ended, too
    if arguments.device == "cuda":
        check_gpu()
    place = Place(arguments.folder.absolute(), arguments.device, arguments.python)
    smoke, rows = Smoke(place, arguments.minutes, not arguments.no_build), list[Row]()
    for name in arguments.row:
        print(f"{name} …", flush=True)
        rows.append(smoke.row(name))
        print(f"{name}: {rows[-1].result}, {rows[-1].seconds:.0f} s; {'; '.join(rows[-1].remarks)}", flush=True)
        about = f"{smoke.about}; {datetime.date.today():%d %B %Y}; commit {provenance.collect()['git_commit']}"
        durable.write_text(place.folder / "table.md", table.page(rows, about))
    print(f"\n{(place.folder / 'table.md').read_text(encoding='utf-8')}\nWritten to {place.folder / 'table.md'}")
    if wrong := [row.name for row in rows if row.result == table.WRONG]:
        raise UserError(f"{len(wrong)} of {len(rows)} rows are wrong, see above: {', '.join(wrong)}")


if __name__ == "__main__":
    run_command(main)
