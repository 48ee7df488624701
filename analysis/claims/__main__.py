"""Decide the claims by the stored results of one scale: `snakemake claims`.

    python -m analysis.claims --results results/demo --output FOLDER

Needs no GPU, and neither trains nor samples anything.
"""

from __future__ import annotations

from pathlib import Path

from analysis.claims.table import table, verdict_counts
from analysis.load_results import load_results
from analysis.pages import table_texts
from contracts import ended_training
from system.command_line import argument_parser
from system.errors import run_command


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--results", type=Path, required=True, help="the results of one scale, such as results/demo")
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    arguments = parser.parse_args()
    runs = arguments.results / "runs"
    scored = (path for path in runs.glob("*/*/seed-*/scores.parquet") if not ended_training.reason(path))
    stored = sorted(str(path.parent.relative_to(runs)) for path in scored)
    claims = table((load_results(arguments.results, name) for name in stored), arguments.results.resolve().name)
    table_texts.write(claims, arguments.output)
    print(verdict_counts(claims))
    print(arguments.output / f"{claims.name}.html")


if __name__ == "__main__":
    run_command(main)
