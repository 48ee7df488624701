"""How many samples a difference needs: repeats for each benchmark, and the limit that its number of problems sets."""

from __future__ import annotations

import argparse
from pathlib import Path

from analysis.compare_checkpoints import graded_checkpoint
from analysis.reference import published_benchmarks
from eval import benchmark
from eval.statistics import significance
from system.errors import UserError

Spreads = dict[str, tuple[int, significance.Spread]]  # per benchmark: number of problems, variance


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `needed`."""
    parser.add_argument("--difference", type=float, required=True, metavar="POINTS", help="true difference to find")
    parser.add_argument("--checkpoint", type=Path, help="graded samples with repeats, to estimate the variance from")
    parser.add_argument("--baseline", type=Path, help="likewise, of the other model")
    parser.add_argument(
        "--benchmark", nargs="+", help="default: those of the samples, or those of the published tables"
    )
    parser.add_argument("--accuracy", type=float, default=50.0, help="assumed without samples (percent; default: 50)")
    parser.add_argument("--likeness", type=float, default=0.5, help="assumed: intraclass correlation (default: 0.5)")
    parser.add_argument("--change", type=float, default=10.0, help="assumed: sd over problems of the change, in points")
    parser.add_argument("--alpha", type=float, default=significance.ALPHA)
    parser.set_defaults(run=print_needed)


def _measured_spreads(checkpoint: Path, baseline: Path) -> Spreads:
    """Number of problems and variance from stored samples."""
    second, first = graded_checkpoint.read(checkpoint), graded_checkpoint.read(baseline)
    spreads = {}
    for name in first.tables.keys() & second.tables.keys():
        if graded_checkpoint.obstacles(second, first, name):
            continue
        pair = [graded_checkpoint.correct(side.tables[name]) for side in (first, second)]
        if spread := significance.spread(*pair):
            spreads[name] = (len(pair[0]), spread)
    if not spreads:
        raise UserError(
            "the variance needs a benchmark with at least two repeats on both sides, but there is none; leave out the "
            "samples and give --accuracy, --likeness and --change instead",
            code="missing-samples",
        )
    return spreads


def _spreads(arguments: argparse.Namespace) -> tuple[Spreads, str]:
    """Number of problems and variance by benchmark, and in words where they come from."""
    if arguments.checkpoint and arguments.baseline:
        return _measured_spreads(arguments.checkpoint, arguments.baseline), "variance from the stored samples"
    if arguments.checkpoint or arguments.baseline:
        raise UserError(
            "the variance needs samples of both models: give --checkpoint and --baseline, or neither",
            code="missing-argument",
        )
    spread = significance.assumed_spread(arguments.accuracy / 100, arguments.likeness, arguments.change / 100)
    origin = (
        f"variance assumed: accuracy {arguments.accuracy:g} %, intraclass correlation {arguments.likeness:g}, change "
        f"between problems ±{arguments.change:g} points"
    )
    return {name: (benchmark.size(name), spread) for name in arguments.benchmark or published_benchmarks()}, origin


def _check_ranges(arguments: argparse.Namespace) -> None:
    ranges = {
        "difference": (0 < arguments.difference <= 100, "above 0 points, up to 100"),
        "alpha": (0 < arguments.alpha < 1, "between 0 and 1"),
        "likeness": (0 <= arguments.likeness <= 1, "from 0 to 1"),
        "accuracy": (0 <= arguments.accuracy <= 100, "from 0 to 100 percent"),
        "change": (0 <= arguments.change <= 100, "from 0 (the same on all problems) to 100 points"),
    }
    for option, (in_range, limits) in ranges.items():
        if not in_range:
            raise UserError(f"--{option} has to be {limits}", code="argument-out-of-range", option=f"--{option}")


def print_needed(arguments: argparse.Namespace) -> int:
    """Print the repeats that each benchmark needs."""
    _check_ranges(arguments)
    spreads, origin = _spreads(arguments)
    names = arguments.benchmark or list(spreads)
    if absent := [name for name in names if name not in spreads]:
        raise UserError(
            f"no variance is known for {', '.join(absent)}; there are samples of: {', '.join(spreads)}",
            code="missing-samples", missing=absent,
        )  # fmt: skip
    alpha = arguments.alpha / (len(names) + (len(names) > 1))
    shares = f" ({arguments.alpha:g} over {len(names)} benchmarks and their mean)" if len(names) > 1 else ""
    print(
        f"A true difference of {arguments.difference:g} points, 80 % power, two-sided {alpha:.4f} per line{shares}; "
        f"{origin}."
    )
    print(f"{'benchmark':<16}{'problems':>9}{'repeats':>11}  smallest with any number of repeats")
    for name in names:
        size, spread = spreads[name]
        need = significance.needed(size, arguments.difference / 100, spread, alpha)
        repeats = "no number" if need.repeats is None else f"{need.repeats:,}"
        more = f"; needs more problems: about {need.problems:,} with one repeat" if need.repeats is None else ""
        print(f"{name:<16}{size:>9,}{repeats:>11}  {100 * need.limit:.1f} points{more}")
    print("Repeats shrink only the noise within problems: they cannot replace more problems.")
    return 0
