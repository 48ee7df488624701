"""Is this checkpoint better than the baseline? From graded samples, or against published figures.

    python -m analysis.compare_checkpoints compare --checkpoint graded/step-100 --baseline graded/step-0 --output check
    python -m analysis.compare_checkpoints compare --checkpoint graded/step-100 --baseline sober/Qwen2.5-Math-7B \
        --accept prompt protocol grader
    python -m analysis.compare_checkpoints show check/check.json
    python -m analysis.compare_checkpoints needed --difference 2 --checkpoint graded/step-100 --baseline graded/step-0
    python -m analysis.compare_checkpoints baselines 7b simplerl

compare and show exit with 0: not worse, 1: worse, 2: not comparable, 3: wrong command, or an error.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from analysis.compare_checkpoints import (
    against_published,
    comparison,
    comparison_output,
    graded_checkpoint,
    published_baselines,
    samples_needed,
    sequential,
)
from contracts import steps
from eval import statistics
from system.errors import UserError, message
from system.text_safety import protect_output


class Parser(argparse.ArgumentParser):
    """argparse exits with 2 after a wrong command, which here means that two sides are not comparable."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and exit with 3."""
        self.print_usage(sys.stderr)
        self.exit(comparison.USAGE, f"{self.prog}: error: {message}\n")


def stored_runs(results: Path) -> dict[str, Path]:
    """Graded checkpoints below a results folder by name: <recipe>/<run>/seed-<n>/step-<n>."""
    runs = results / "runs"
    graded = sorted(runs.glob("*/*/*/graded"))
    return {
        f"{folder.parent.relative_to(runs)}/{step.name}": step
        for folder in graded
        for step in steps.folders(folder).values()
    }


def locate(name: str, results: Path) -> Path | None:
    """The graded samples of this name: a path, or a stored checkpoint. None if it is neither."""
    if Path(name).exists():
        return Path(name)
    return stored_runs(results).get(name)


def run_compare(arguments: argparse.Namespace) -> int:
    """Compare, print and write. Returns the exit status."""
    place = locate(arguments.checkpoint, arguments.results)
    if place is None:
        near = published_baselines.nearest(arguments.checkpoint, stored_runs(arguments.results))
        hint = f"; the nearest stored results are: {', '.join(near)}" if near else ""
        raise UserError(f"--checkpoint should be graded samples, but there is no '{arguments.checkpoint}'{hint}")
    checkpoint = graded_checkpoint.read(place, arguments.checkpoint_name or arguments.checkpoint)
    settings: dict[str, Any] = {"alpha": arguments.alpha, "margin": arguments.margin / 100}
    other = locate(arguments.baseline, arguments.results)
    changed = {}
    if other is None:
        row = published_baselines.find(arguments.baseline, stored_runs(arguments.results))
        result = against_published.published(
            checkpoint, row, arguments.benchmark, accepted=arguments.accept, problems=arguments.problems, **settings
        )
    else:
        baseline = graded_checkpoint.read(other, arguments.baseline_name or arguments.baseline)
        result = comparison.paired(
            checkpoint, baseline, arguments.benchmark, accepted=arguments.accept,
            ungradable=arguments.ungradable / 100, ties=arguments.ties, **settings,
        )  # fmt: skip
        compared = [line.benchmark for line in result.lines if line.difference and line.benchmark != comparison.ALL]
        changed = {name: comparison_output.changed_problems(checkpoint, baseline, name) for name in compared}
    if arguments.output:
        comparison_output.write(result, changed, arguments.output)
    print(
        {"table": comparison_output.terminal, "markdown": comparison_output.markdown, "json": _json}[arguments.format](
            result
        )
    )
    return result.exit_status


def _json(result: comparison.GateResult) -> str:
    return json.dumps(result.to_json(), indent=2)  # in ASCII, so that a terminal shows it and a program reads it


def run_show(arguments: argparse.Namespace) -> int:
    """Print a stored comparison. Returns its exit status."""
    try:
        status = int(json.loads(arguments.file.read_text(encoding="utf-8"))["exit_status"])
        print(arguments.file.with_name("check.txt").read_text(encoding="utf-8"), end="")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{arguments.file} should be the check.json of a comparison, but is not ({error})") from None
    return status


def run_baselines(arguments: argparse.Namespace) -> int:
    """List the published baselines whose name contains all words of the query."""
    known = published_baselines.load()
    found = published_baselines.search(" ".join(arguments.words), known)
    if not found:
        near = published_baselines.nearest(" ".join(arguments.words), known)
        hint = f"; the nearest names are: {', '.join(near)}" if near else ""
        raise UserError(f"no baseline has '{' '.join(arguments.words)}' in its name{hint}")
    for name in found:
        scores = known[name].scores
        print(name + ": " + ", ".join(f"{b} {100 * score.accuracy:.1f}" for b, score in scores.items()))
    for title in dict.fromkeys(f"{known[name].title}, {known[name].source}" for name in found):
        print(f"source: {title}")
    return 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = Parser(
        prog="python -m analysis.compare_checkpoints",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    comparing = commands.add_parser("compare", help="compare two checkpoints, or one with published figures")
    comparing.add_argument(
        "--checkpoint", required=True, metavar="SAMPLES", help="graded samples: file, folder or name"
    )
    comparing.add_argument("--baseline", required=True, help="likewise, or the name of a published baseline")
    comparing.add_argument("--checkpoint-name", help="its name in the output (default: the path)")
    comparing.add_argument("--baseline-name")
    comparing.add_argument("--benchmark", nargs="+", help="default: all that either side has")
    comparing.add_argument(
        "--margin", type=float, default=0.0, help="a loss of up to this many points is not called worse"
    )
    comparing.add_argument("--alpha", type=float, default=0.05, help="chance of any false verdict (default: 0.05)")
    comparing.add_argument(
        "--accept", nargs="+", choices=graded_checkpoint.ACCEPTABLE, default=[], help="what may differ"
    )
    comparing.add_argument(
        "--ungradable", type=float, default=100 * graded_checkpoint.UNGRADABLE, metavar="PERCENT",
        help="largest share of ungradable completions on a side (default: 5)",
    )  # fmt: skip
    comparing.add_argument(
        "--ties", choices=statistics.TIES, help="of maj@k (default: as the samples' source has them)"
    )
    comparing.add_argument(
        "--problems", choices=against_published.QUESTIONS, default=against_published.LIKE,
        help="against published figures: better on these same problems, or on problems like these (default)",
    )  # fmt: skip
    comparing.add_argument("--output", type=Path, help="folder for check.json, check.md, check.txt and index.html")
    comparing.add_argument("--format", choices=["table", "markdown", "json"], default="table", help="what is printed")
    comparing.add_argument(
        "--results", type=Path, default=Path("results/demo"), help="folder in which names of checkpoints are looked up"
    )
    comparing.set_defaults(run=run_compare)
    showing = commands.add_parser("show", help="print a stored comparison and exit with its status")
    showing.add_argument("file", type=Path, help="check.json")
    showing.set_defaults(run=run_show)
    samples_needed.add_arguments(commands.add_parser("needed", help="how many samples a difference needs"))
    sequential.add_arguments(
        commands.add_parser("sequential", help="sample two models in rounds until the verdict is clear")
    )
    listing = commands.add_parser("baselines", help="list published baselines")
    listing.add_argument("words", nargs="*", help="parts of the name")
    listing.set_defaults(run=run_baselines)
    arguments = parser.parse_args()
    if arguments.run is run_compare and not (0 < arguments.alpha < 1 and 0 <= arguments.margin <= 100):
        parser.error("--alpha has to be between 0 and 1, --margin from 0 to 100 points")
    return arguments


def main() -> int:
    """Run a command. Returns its exit status."""
    protect_output()
    try:
        arguments = parse()
        status: int = arguments.run(arguments)
    except Exception as error:  # Python would exit with 1, which here means worse
        if text := message(error):
            print(f"Error: {text}", file=sys.stderr)
        else:
            traceback.print_exc()
        return comparison.USAGE
    return status


if __name__ == "__main__":
    sys.exit(main())
