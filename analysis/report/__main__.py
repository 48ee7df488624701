"""Report one or several runs from their stored results: tables, figures, and one self-contained page.

    crosszero report-page --results results/demo --run openr1/qwen2.5-math-7b/seed-0 --output results/demo/report

Needs no GPU, and neither generates nor grades anything. An incomplete run is refused.
"""

from __future__ import annotations

from pathlib import Path

from analysis.load_results import load_results
from analysis.report import log_page
from analysis.report.build import report, write_captions
from system.command_line import argument_parser
from system.errors import UserError, run_command


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--results", type=Path, required=True, help="the results of one scale, such as results/demo")
    parser.add_argument(
        "--run", nargs="+", required=True, metavar="RECIPE/RUN/SEED", help="runs to report, in this order"
    )
    parser.add_argument(
        "--benchmark", nargs="+", default=[], help="benchmarks that every run must have (default: those found)"
    )
    parser.add_argument("--output", type=Path, required=True, help="folder for the page, tables and figures")
    parser.add_argument("--overlap", type=Path, help="CSV table of tasks.overlap to show on the page")
    parser.add_argument(
        "--captions", type=Path, metavar="FOLDER", help="also write the captions for Snakemake's own report"
    )
    parser.add_argument("--title", default="CrossZero report", help="title of the page")
    parser.add_argument("--scale", help="name of the scale, shown on the page (default: the results folder's name)")
    arguments = parser.parse_args()
    if len(set(arguments.run)) < len(arguments.run):
        raise UserError("each run should be named once, but one is named twice; name it once", code="repeated-name")
    runs = [load_results(arguments.results, name, arguments.benchmark) for name in arguments.run]
    scale = arguments.scale or arguments.results.resolve().name
    if any(run.evaluated for run in runs):
        index = report(runs, arguments.output, arguments.title, scale, arguments.overlap)
    else:
        index = log_page.write(runs, arguments.output, scale)
    if arguments.captions:
        write_captions(arguments.captions)
    print(f"report: {index}")


if __name__ == "__main__":
    run_command(main)
