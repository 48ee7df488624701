"""`crosszero benchmark RUN…`: time, memory and cost to the same accuracy."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import yaml

from cli import environments, grade, graph
from contracts.paths import ResultsFolder
from contracts.seeds import run_id
from recipes.run_sets import run_set_name
from system.errors import ROOT, UserError

RUNS = ("crosscheck",)  # the same run through every framework
SEEDS = "[0, 1, 2]"


@click.command(cls=graph.WorkflowCommand)
@graph.runs_argument
@click.option("--vary", metavar="KEY=VALUE,VALUE,…", help="Each run with each value of a key of its file.")
@click.option(
    "--with", "others", multiple=True, type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    metavar="FILE", help="benchmark.json of another machine, to be shown beside.",
)  # fmt: skip
@click.option(
    "--bare", is_flag=True, help="Also train by each framework's own command, to measure what CrossZero adds."
)
@click.option("--accuracy", type=float, metavar="PERCENT", help="To reach; by default what all trainings reach.")
@click.option("--price", type=float, help="Of an hour of a GPU, or of the machine where there is none.")
@graph.workflow_options
def command(
    runs: tuple[str, ...], vary: str | None, others: tuple[str, ...], bare: bool, accuracy: float | None,
    price: float | None, settings: dict[str, str], options: list[str],
) -> None:  # fmt: skip
    """Measure what the same run costs through each framework: time to the same accuracy, by phase, memory, money.

    Without RUN: the recipe crosscheck, which is one run through all frameworks. The trainings of all seeds are made one
    at a time, in a random order, with nothing beside them; what is there already is not made again. Then their
    checkpoints are evaluated, and one page shows all of it, with a benchmark.json for the pages of other machines.
    """
    check_request(others, accuracy, price)
    settings.setdefault("seeds", SEEDS)
    configuration = grade.configured(**{key: yaml.safe_load(text) for key, text in settings.items()})
    scale, seeds = configuration["scale"], list(dict.fromkeys(configuration["seeds"]))
    names = list(dict.fromkeys(varied(run_names(runs or RUNS, scale), vary, scale)))
    check_benchmarks(names, scale)
    results = ResultsFolder(ROOT / configuration["results"] / scale)
    chosen = settings | graph.configuration({"reproduce": names})
    trained = [results.run(run_id(name, seed)) for name in names for seed in seeds]
    is_dry = "--dry-run" in options
    logs = [graph.target_of(folder.training_log) for folder in trained]
    pairs = [(results.run(run_id(name, seed)), name) for name in names for seed in seeds] if bare else []
    timed = [graph.target_of(folder.bare_training(stage)) for folder, name in pairs for stage in stages(name, scale)]
    for status in train_alone([] if is_dry else [*logs, *timed], chosen, options):
        if status:
            sys.exit(status)
    scored = [graph.target_of(folder.scores) for folder in trained]
    if (status := graph.run_target(scored[0], chosen, [*scored[1:], *timed, *options])) or is_dry:
        sys.exit(status)
    page = ["--run", *names, "--seeds", *map(str, seeds), "--scale", scale, "--results", str(results.path)]
    folder = results.path / "benchmark" / run_set_name(names, {}, run_names(RUNS, scale))
    page += ["--output", str(folder), *(["--with", *others] if others else [])]
    page += [f"--{key}={value}" for key, value in (("accuracy", accuracy), ("price", price)) if value is not None]
    sys.exit(environments.run_module("base", "analysis.benchmark", page, program="crosszero benchmark"))


def check_request(others: Sequence[str], accuracy: float | None, price: float | None) -> None:
    """Raise UserError for what the page could not show, before anything is trained."""
    from analysis.benchmark import trainings

    for file in others:
        trainings.read(Path(file))
    if accuracy is not None and not 0 < accuracy <= 100:
        raise UserError(f"--accuracy should be a percentage above 0, but is {accuracy:g}", code="bad-accuracy")
    if price is not None and not 0 < price < math.inf:
        raise UserError(f"--price should be an amount above 0, but is {price:g}", code="bad-price")


def check_benchmarks(names: Sequence[str], scale: str) -> None:
    """Raise UserError for runs that are evaluated on other benchmarks: they have no accuracy in common."""
    from recipes.runs import load_run

    evaluations = {name: load_run(name, scale).evaluation for name in names}
    first, *others = ((name, sorted(own["benchmarks"])) for name, own in evaluations.items())
    for name, benchmarks in others:
        if benchmarks != first[1]:
            raise UserError(
                f"runs are compared by the time to the same accuracy, but {first[0]} is evaluated on "
                f"{', '.join(first[1])} and {name} on {', '.join(benchmarks)}: choose runs with the same benchmarks",
                code="other-benchmark",
            )


def run_names(named: Sequence[str], scale: str) -> list[str]:
    """The runs of recipes and runs that have values at a scale; those that are neither are left to the workflow."""
    from recipes.runs import run_names

    known = run_names(scale)
    return [run for name in named for run in ([k for k in known if k.split("/")[0] == name] or [name])]


def varied(names: Sequence[str], vary: str | None, scale: str) -> list[str]:
    """Each run with each value of `KEY=VALUE,VALUE`; the run itself for the value that it has."""
    if vary is None:
        return list(names)
    key, equals, values = vary.partition("=")
    if not equals or not all(values.split(",")):
        raise UserError(
            f"--vary should be a key of the run and values, such as batch.samples_per_prompt=4,8,16, not {vary}",
            code="bad-variation",
        )
    return [_variant(name, key, value, scale) for name in names for value in values.split(",")]


def _variant(name: str, key: str, value: str, scale: str) -> str:
    from recipes import runs, variants

    variant = variants.name(name, {key: value})
    try:
        runs.load_run(variant, scale)
    except UserError as error:
        if error.code == "equal-settings":
            return name
        raise
    return variant


def stages(name: str, scale: str) -> list[int]:
    """The numbers of a run's stages."""
    from recipes.runs import load_run

    return [stage.number for stage in load_run(name, scale).stages]


def train_alone(files: Sequence[str], settings: dict[str, str], options: Sequence[str]) -> Iterator[int]:
    """The exit status of each training, by what it writes, in a random order that is the same for the same files."""
    order = list(files)
    random.Random(" ".join(order)).shuffle(order)
    for file in order:
        yield graph.run_target(file, settings, options)
