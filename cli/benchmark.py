"""`crosszero benchmark RUN…`: time, memory and cost to the same accuracy."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence

import click

from analysis.benchmark import request
from cli import graph
from contracts.paths import ResultsFolder
from contracts.seeds import run_id
from recipes.runs import load_run
from system.errors import ROOT, UserError

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
@click.option("--accuracy", type=float, metavar="PERCENT", help="To reach; by default what all reach that learn.")
@click.option(
    "--price", metavar="AMOUNT,NAME=AMOUNT,…",
    help="For an hour of a GPU here, or of the machine where there is none; for others by a part of the name of their "
    "GPU, else of their machine. Of names that fit, the longest counts.",
)  # fmt: skip
@graph.workflow_options
def command(
    runs: tuple[str, ...], vary: str | None, others: tuple[str, ...], bare: bool, accuracy: float | None,
    price: str | None, settings: dict[str, str], options: list[str],
) -> None:  # fmt: skip
    """Measure what the same run costs through each framework: time to the same accuracy, by phase, memory, money.

    Without RUN: the recipe crosscheck, which is one run through all frameworks. The trainings of all seeds are made one
    at a time, in a random order, with nothing beside them; what is there already is not made again. Then their
    checkpoints are evaluated, and one page shows all of it, with a benchmark.json for the pages of other machines.
    """
    files = list(dict.fromkeys(others)) or None
    page_settings = {"with": files, "bare": bare or None, "accuracy": accuracy, "price": price or None}
    chosen = {"seeds": SEEDS} | settings | graph.configuration(page_settings)
    configuration = graph.read_configuration(chosen)
    scale, results = configuration["scale"], ROOT / configuration["results"] / configuration["scale"]
    names = list(dict.fromkeys(varied(request.run_names(runs or request.RUNS, scale), vary, scale)))
    page = request.page_folder(results, names, scale)
    files_of_others = [ROOT / file for file in configuration.get("with", [])]  # as the workflow reads paths
    request.check(
        names, scale, files_of_others, str(configuration.get("price", "")), page
    )  # before anything is trained
    chosen |= graph.configuration({"reproduce": names})
    timed = [
        graph.target_of(file)
        for name in names
        for seed in configuration["seeds"]
        for file in request.timed_files(
            ResultsFolder(results).run(run_id(name, seed)), load_run(name, scale), configuration.get("bare", False)
        )
    ]
    for status in train_alone([] if "--dry-run" in options else timed, chosen, options):
        if status:
            sys.exit(status)
    sys.exit(graph.run_target("benchmark", chosen, options))


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


def train_alone(files: Sequence[str], settings: dict[str, str], options: Sequence[str]) -> Iterator[int]:
    """The exit status of each training, by what it writes, in a random order that is the same for the same files."""
    order = list(files)
    random.Random(" ".join(order)).shuffle(order)
    for file in order:
        yield graph.run_target(file, settings, options)
