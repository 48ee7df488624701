"""Read the training runs of two recipes, compare them, and plan how many are needed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis import hash_order
from analysis.compare_checkpoints import inputs
from analysis.compare_checkpoints.inputs import GradedCheckpoint
from analysis.compare_recipes import pass_at_k, plan
from analysis.compare_recipes.pass_at_k import Recipe, RecipeRun
from analysis.reference import in_order
from analysis.report.tables import interval_text
from analysis.statistics import recipe_difference
from analysis.table_export import markdown, percent, points
from contracts import steps
from eval.statistics import TIES, Estimate
from system import durable
from system.errors import UserError

LAST, CHOSEN = RULES = ("last", "chosen")
Runs = dict[str, list[npt.NDArray[np.bool_]]]  # per benchmark, the correct answers of each run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `recipes`."""
    for side in "ab":
        parser.add_argument(
            f"--{side}", nargs="+", type=Path, required=True, metavar="GRADED",
            help="graded samples of its training runs, one folder per seed: …/seed-0/graded …/seed-1/graded",
        )  # fmt: skip
    parser.add_argument("--benchmark", nargs="+", help="default: all")
    parser.add_argument(
        "--rule", choices=RULES, default=LAST,
        help="which checkpoint: the last, or for each half of the problems the best on the other half",
    )  # fmt: skip
    parser.add_argument("--ties", choices=TIES, help="of maj@k (default: as the samples' source has them)")
    parser.add_argument("--accept", nargs="+", choices=inputs.ACCEPTABLE, default=[], help="what may differ")
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--difference", type=float, default=2.0, metavar="POINTS", help="to plan for (default: 2)")
    parser.add_argument("--training-cost", type=float, default=1.0, help="of one training, in any unit (default: 1)")
    parser.add_argument("--sample-cost", type=float, default=1e-5, help="of one completion (default: 0.00001)")
    parser.add_argument("--output", type=Path, help="folder for recipes.json and recipes.md")
    parser.set_defaults(run=run)


def half(problem: str) -> int:
    """Which half of the problems one is in, 0 or 1, by its name alone."""
    return int(hash_order.place("half of", problem)[:2], 16) % 2


def _run(run: Sequence[GradedCheckpoint], name: str, repeats: int) -> RecipeRun:
    """A run's samples with this many repeats. Of several checkpoints, each half has the best on the other half."""
    whole = [checkpoint.tables[name] for checkpoint in run]
    correct = np.stack([inputs.correct(table) for table in whole])
    halves = np.array([half(problem) for problem in whole[0]["problem_id"].drop_duplicates()])
    counts = np.full(len(halves), len(run) - 1)
    for side in (0, 1):
        others = correct[:, halves != side]
        if others.size:
            counts[halves == side] = int(others.mean(axis=(1, 2)).argmax())
    return RecipeRun([table[table["repeat"] < repeats] for table in whole], counts)


def checkpoints(place: Path, rule: str) -> list[GradedCheckpoint]:
    """The evaluated checkpoints of a run that the rule may choose from; the model before training is none."""
    folders = {step: folder for step, folder in steps.folders(place).items() if step > 0}
    if not folders:
        return [inputs.read(place)]
    kept = list(folders.values()) if rule == CHOSEN else [list(folders.values())[-1]]
    return [inputs.read(folder) for folder in kept]


def read(
    sides: Sequence[Sequence[Path]], rule: str, benchmarks: Sequence[str] | None, accepted: Sequence[str]
) -> list[Runs]:
    """The correct answers of both recipes.

    Args:
        sides: per recipe, the folders of its runs.
        rule: LAST or CHOSEN.
        benchmarks: by default all of the first run.
        accepted: what may differ between runs, of inputs.ACCEPTABLE.

    Raises:
        UserError: a run is named twice, or is not comparable with the first one.
    """
    return correct_answers(checked(sides, rule, benchmarks, accepted))


def correct_answers(found: Sequence[Recipe]) -> list[Runs]:
    """Per recipe and benchmark, the correct answers of each run, of shape (problems, repeats)."""
    return [
        {
            name: [run.pick([inputs.correct(table) for table in run.tables]) for run in runs]
            for name, runs in one.items()
        }
        for one in found
    ]


def checked(
    sides: Sequence[Sequence[Path]], rule: str, benchmarks: Sequence[str] | None, accepted: Sequence[str]
) -> list[Recipe]:
    """The graded samples of both recipes, with the same number of repeats everywhere. See `read`."""
    places = [place.resolve() for side in sides for place in side]
    if twice := {str(place) for place in places if places.count(place) > 1}:
        raise UserError(f"each training run should be named once, but {', '.join(sorted(twice))} is named again")
    found = [[checkpoints(place, rule) for place in side] for side in sides]
    first = found[0][0][-1]
    names = in_order(benchmarks or first.tables)
    for checkpoint in (checkpoint for side in found for run in side for checkpoint in run):
        for name in names:
            if reasons := inputs.obstacles(checkpoint, first, name, accepted):
                raise UserError(
                    f"{checkpoint.name} and {first.name} cannot be compared on {name}: {'; '.join(reasons)}"
                )
    fewest = {name: min(inputs.repeats(run[-1].tables[name]) for side in found for run in side) for name in names}
    return [{name: [_run(run, name, fewest[name]) for run in side] for name in names} for side in found]


def frame(results: Sequence[recipe_difference.RecipeResult]) -> pd.DataFrame:
    """The table of the comparison, as texts."""
    return pd.DataFrame(
        {
            "benchmark": line.benchmark,
            "runs": f"{line.seeds[0]} / {line.seeds[1]}",
            "A (%)": percent(line.means[0]),
            "B (%)": percent(line.means[1]),
            "B less A, Welch (points)": interval_text(line.welch.difference, points),
            "crossed effects (points)": interval_text(line.crossed.difference, points),
            "df": f"{line.welch.df:.1f} / {line.crossed.df:.1f}",
            "p (Holm)": f"{line.p_adjusted:.4f}",
            "detectable": f"±{100 * line.detectable:.1f}",
            "verdict": line.verdict,
        }
        for line in results
    )


def pass_frame(found: Mapping[str, Sequence[recipe_difference.RecipeResult]]) -> pd.DataFrame:
    """The table of pass@k and maj@k, as texts: each recipe's mean over its runs, and their difference.

    Args:
        found: a line per benchmark, by measure.
    """
    columns = ["benchmark", "A (%)", "B (%)", "B less A, Welch (points)", "crossed effects (points)"]
    whole = pd.concat([frame(lines)[columns].assign(measure=measure) for measure, lines in found.items()])
    return whole[["benchmark", "measure", *columns[1:]]].sort_values("benchmark", kind="stable")


def components_frame(results: Sequence[recipe_difference.RecipeResult]) -> pd.DataFrame:
    """Standard deviations in points of the parts of which the accuracy on one problem is made, as texts."""
    return pd.DataFrame(
        {"benchmark": line.benchmark, **{part.replace("_", " × "): f"{100 * value**0.5:.1f}" for part, value in found}}
        for line in results
        if line.components
        for found in [line.components._asdict().items()]
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare, print and write. Returns 0."""
    if not (0 < arguments.alpha < 1 and 0 < arguments.difference <= 100):
        raise UserError("--alpha has to be between 0 and 1, --difference above 0 points, up to 100")
    found = checked([arguments.a, arguments.b], arguments.rule, arguments.benchmark, arguments.accept)
    a, b = correct_answers(found)
    several = pass_at_k.compare(found[0], found[1], arguments.ties)
    results = recipe_difference.compare(a, b, arguments.alpha)
    rule = {
        LAST: "the last checkpoint of each run",
        CHOSEN: "on each half of the problems, the checkpoint that is best on the other half",
    }[arguments.rule]
    parts = [
        markdown(frame(results)),
        f"Rule: {rule}. A verdict holds for new seeds and new problems: both tests have to find it after Holm's "
        f"correction at {arguments.alpha:g}. detectable: the true difference found with 80 % power at these degrees of "
        "freedom.",
    ]
    if several:
        parts += ["\nSeveral samples per problem (95 % intervals, not adjusted, no verdict):\n"]
        parts += [markdown(pass_frame(several))]
    if len(spreads := components_frame(results)):
        parts += ["\nStandard deviations on one problem, in points:\n", markdown(spreads)]
        parts += [f"Runs and samples that find a difference of {arguments.difference:g} points:\n"]
        parts.append(
            plan.text(
                results, {name: len(runs[0]) for name, runs in a.items()}, arguments.difference / 100,
                (arguments.training_cost, arguments.sample_cost), arguments.alpha,
            )
        )  # fmt: skip
    text = "\n".join(parts) + "\n"
    print(text, end="")
    if arguments.output:
        content = {"a": list(map(str, arguments.a)), "b": list(map(str, arguments.b)), "rule": arguments.rule}
        lines = _dictionaries(results)
        measures = {measure: _dictionaries(found) for measure, found in several.items()}
        durable.write_text(
            arguments.output / "recipes.json",
            json.dumps({**content, "lines": lines, "passes": measures}, indent=2) + "\n",
        )
        durable.write_text(arguments.output / "recipes.md", text)
    return 0


def _dictionaries(lines: Sequence[recipe_difference.RecipeResult]) -> list[dict[str, Any]]:
    return [asdict(line, dict_factory=_plain) for line in lines]


def _plain(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: _named(value) for key, value in items}


def _named(value: Any) -> Any:
    if isinstance(value, recipe_difference.Test):
        return {**value._asdict(), "difference": value.difference._asdict()}
    return value._asdict() if isinstance(value, recipe_difference.Components | Estimate) else value
