"""Is this checkpoint better than the baseline? From graded samples, or against published figures.

    crosszero compare-checkpoints compare --checkpoint graded/step-100 --baseline graded/step-0 \
        --output comparison
    crosszero compare-checkpoints compare --checkpoint graded/step-100 --baseline sober/Qwen2.5-Math-7B \
        --accept prompt protocol grader
    crosszero compare-checkpoints show comparison/comparison.json
    crosszero compare-checkpoints needed --difference 2 --checkpoint graded/step-100 --baseline graded/step-0
    crosszero compare-checkpoints baselines 7b simplerl

compare and show exit with 0: not worse, 1: worse, 2: not comparable, 3: an error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from analysis.compare_checkpoints import (
    against_published,
    comparison,
    comparison_output,
    exit_status,
    graded_checkpoint,
    paired_comparison,
    published_baselines,
    samples_needed,
    selection,
    sequential,
)
from analysis.compare_checkpoints.graded_checkpoint import GradedCheckpoint
from contracts import steps
from eval import statistics
from system.command_line import program_name
from system.errors import UserError
from system.unknown_names import nearest


def stored_checkpoints(results: Path) -> dict[str, Path]:
    """Graded checkpoints below a results folder by name: <recipe>/<run>/seed-<n>/step-<n>."""
    runs = results / "runs"
    return {
        f"{folder.parent.relative_to(runs)}/{step.name}": step
        for folder in sorted(runs.glob("*/*/*/graded"))
        for step in steps.folders(folder).values()
    }


def locate_samples(name: str, results: Path) -> Path | None:
    """The graded samples of this name: a path, or a stored checkpoint. None if it is neither."""
    if Path(name).exists():
        return Path(name)
    return stored_checkpoints(results).get(name)


def _nearest_hint(name: str, known: Iterable[str], what: str) -> str:
    close = nearest(name, known)
    return f"; the nearest {what} are: {', '.join(close)}" if close else ""


def run_compare(arguments: argparse.Namespace) -> int:
    """Compare, print and write. Returns the exit status."""
    comparison.check_level_options(arguments)
    samples = locate_samples(arguments.checkpoint, arguments.results)
    if samples is None:
        hint = _nearest_hint(arguments.checkpoint, stored_checkpoints(arguments.results), "stored results")
        raise UserError(
            f"--checkpoint should be graded samples, but there is no '{arguments.checkpoint}'{hint}",
            code="unknown-name", name=arguments.checkpoint,
        )  # fmt: skip
    checkpoint = graded_checkpoint.read(samples, arguments.checkpoint_name or arguments.checkpoint)
    levels = {"alpha": arguments.alpha / arguments.candidates, "margin": arguments.margin_points / 100}
    baseline_samples = locate_samples(arguments.baseline, arguments.results)
    changed = {}
    if baseline_samples is None:
        result = _against_published(arguments, checkpoint, levels)
    else:
        baseline = graded_checkpoint.read(baseline_samples, arguments.baseline_name or arguments.baseline)
        if arguments.choose_on_half:
            checkpoint, baseline, note = selection.chosen_on_half(samples, baseline)
        result = _compare_pair(arguments, checkpoint, baseline, levels)
        if arguments.choose_on_half:
            result = replace(result, notes=(*result.notes, note))
        changed = comparison_output.all_changed_problems(result, checkpoint, baseline)
    result = selection.with_selection(result, samples, arguments.candidates, arguments.output, arguments.choose_on_half)
    if arguments.output:
        comparison_output.write(result, changed, arguments.output)
    print(FORMATS[arguments.format](result))
    return result.exit_status


def _against_published(
    arguments: argparse.Namespace, checkpoint: GradedCheckpoint, levels: Mapping[str, float]
) -> comparison.Comparison:
    for option in ("choose_on_half", "looks", "posterior"):
        if getattr(arguments, option):
            raise UserError(
                f"--{option.replace('_', '-')} needs the samples of both sides, but a published row has none",
                code="needless-option", option=option,
            )  # fmt: skip
    row = published_baselines.find(arguments.baseline, stored_checkpoints(arguments.results))
    return against_published.compare(
        checkpoint, row, arguments.benchmark, accepted=arguments.accept, problems=arguments.problems, **levels
    )


def _compare_pair(
    arguments: argparse.Namespace, checkpoint: GradedCheckpoint, baseline: GradedCheckpoint, levels: Mapping[str, float]
) -> comparison.Comparison:
    if arguments.looks:
        for option, usual in (("problems", comparison.LIKE), ("ties", None), ("posterior", False)):
            if getattr(arguments, option) != usual:
                raise UserError(
                    f"--{option} needs a single look, but --looks asks for several; leave one of them out",
                    code="needless-option", option=option,
                )  # fmt: skip
        names = comparison.benchmarks_to_compare(checkpoint.tables.keys() | baseline.tables.keys(), arguments.benchmark)
        return sequential.compare(
            checkpoint, baseline, names, sequential.Rules(arguments.looks, **levels, stored=True), arguments.accept,
            arguments.ungradable / 100,
        )  # fmt: skip
    return paired_comparison.compare(
        checkpoint, baseline, arguments.benchmark, accepted=arguments.accept, ungradable=arguments.ungradable / 100,
        ties=arguments.ties, problems=arguments.problems, with_posterior=arguments.posterior, **levels,
    )  # fmt: skip


def _json_text(result: comparison.Comparison) -> str:
    return json.dumps(result.to_json(), indent=2)  # in ASCII, so that a terminal shows it and a program reads it


FORMATS = {"table": comparison_output.terminal, "markdown": comparison_output.markdown, "json": _json_text}


def run_show(arguments: argparse.Namespace) -> int:
    """Print a stored comparison. Returns its exit status."""
    try:
        status = int(json.loads(arguments.file.read_text(encoding="utf-8"))["exit_status"])
        print(arguments.file.with_name("comparison.txt").read_text(encoding="utf-8"), end="")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(
            f"{arguments.file} should be the comparison.json of a comparison, but is not ({error})",
            code="not-a-comparison", path=str(arguments.file),
        ) from None  # fmt: skip
    return status


def run_baselines(arguments: argparse.Namespace) -> int:
    """List the published baselines whose name contains all words of the query."""
    known, query = published_baselines.load(), " ".join(arguments.words)
    names = published_baselines.search(query, known)
    if not names:
        raise UserError(
            f"no baseline has '{query}' in its name{_nearest_hint(query, known, 'names')}",
            code="unknown-name", name=query,
        )  # fmt: skip
    for name in names:
        scores = known[name].scores
        print(name + ": " + ", ".join(f"{b} {100 * score.accuracy:.1f}" for b, score in scores.items()))
    for title in dict.fromkeys(f"{known[name].title}, {known[name].source}" for name in names):
        print(f"source: {title}")
    return 0


def add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compare`."""
    parser.add_argument("--checkpoint", required=True, metavar="SAMPLES", help="graded samples: file, folder or name")
    parser.add_argument("--baseline", required=True, help="likewise, or the name of a published baseline")
    parser.add_argument("--checkpoint-name", help="its name in the output (default: the path)")
    parser.add_argument("--baseline-name")
    parser.add_argument("--benchmark", nargs="+", help="default: all that either side has")
    comparison.add_level_options(parser)
    parser.add_argument(
        "--candidates", type=int, default=1, metavar="N",
        help="checkpoints of which this one was chosen by these scores; divides the level",
    )  # fmt: skip
    parser.add_argument("--accept", nargs="+", choices=graded_checkpoint.ACCEPTABLE, default=[], help="what may differ")
    parser.add_argument(
        "--ungradable", type=float, default=100 * graded_checkpoint.UNGRADABLE, metavar="PERCENT",
        help="largest share of ungradable completions on a side (default: %(default)g)",
    )  # fmt: skip
    parser.add_argument("--ties", choices=statistics.TIES, help="of maj@k (default: as the samples' source has them)")
    parser.add_argument(
        "--problems", choices=comparison.QUESTIONS, default=comparison.LIKE,
        help="the question: better on these same problems, or on problems like these (default)",
    )  # fmt: skip
    parser.add_argument(
        "--choose-on-half", action="store_true",
        help="compare the checkpoint of the run that is best on half of the problems, on the other half",
    )  # fmt: skip
    parser.add_argument(
        "--looks", type=int, metavar="N",
        help="verdicts that hold however often one looks, after 1, 2, 4, … up to N completions per problem",
    )  # fmt: skip
    parser.add_argument(
        "--posterior", action="store_true", help="note the posterior with a uniform prior (Bayes@N), too"
    )
    parser.add_argument(
        "--output", type=Path, help="folder for comparison.json, comparison.md, comparison.txt and index.html"
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="what is printed")
    parser.add_argument(
        "--results", type=Path, default=Path("results/demo"), help="folder in which names of checkpoints are looked up"
    )
    parser.set_defaults(run=run_compare)


def parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, or this one in its place."""
    parser = exit_status.Parser(
        prog=program_name(),
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    add_compare_arguments(commands.add_parser("compare", help="compare two checkpoints, or one with published figures"))
    show = commands.add_parser("show", help="print a stored comparison and exit with its status")
    show.add_argument("file", type=Path, help="comparison.json")
    show.set_defaults(run=run_show)
    samples_needed.add_arguments(commands.add_parser("needed", help="how many samples a difference needs"))
    sequential.add_arguments(
        commands.add_parser("sequential", help="sample two models in rounds until the verdict is clear")
    )
    baselines = commands.add_parser("baselines", help="list published baselines")
    baselines.add_argument("words", nargs="*", help="parts of the name")
    baselines.set_defaults(run=run_baselines)
    return parser.parse_args(command_line)


def main(command_line: Sequence[str] | None = None) -> int:
    """Run a command, by default that of the command line. Returns its exit status."""

    def run() -> int:
        arguments = parse_arguments(command_line)
        status: int = arguments.run(arguments)
        return status

    return exit_status.of_command(run)


if __name__ == "__main__":
    sys.exit(main())
