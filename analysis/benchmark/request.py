"""What a benchmark is asked for, checked before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from contracts.paths import RunFolder
from contracts.run_file import Run
from eval.run_settings import benchmarks_as_evaluated
from frameworks import adapter
from recipes import runs
from recipes.run_sets import run_set_name
from system.errors import UserError

RUNS = ("crosscheck",)  # the same run through every framework
MOST = 1e100  # for an hour: its costs are numbers, too
FILE = "benchmark.json"  # in the folder of a page: its trainings, for pages of other machines


def run_names(named: Sequence[str], scale: str) -> list[str]:
    """The runs of recipes and runs that have values at a scale; those that are neither are left to the workflow."""
    known = runs.run_names(scale)
    return [run for name in named for run in ([k for k in known if k.split("/")[0] == name] or [name])]


def page_folder(results: Path, names: Sequence[str], scale: str) -> Path:
    """Where the page is written, in the results of a scale."""
    return results / "benchmark" / run_set_name(names, {}, run_names(RUNS, scale))


def timed_files(folder: RunFolder, run: Run, bare: bool) -> list[Path]:
    """What the training in a folder writes that is timed; with `bare` also that by the framework's own command."""
    return [folder.training_log, *(folder.bare_training(stage.number) for stage in run.stages if bare)]


def prices(text: str) -> dict[str, float]:
    """The amounts of `2.5,H200=4`, by names of GPUs or machines in lower case; this machine's has none.

    Raises:
        UserError: it is of another form, or an amount is not above 0.
    """
    amounts = dict[str, float]()
    for part in text.split(",") if text else ():
        name, equals, amount = part.rpartition("=")
        key = name.strip().casefold()
        try:
            amounts[key] = math.nan if key in amounts or bool(equals) != bool(key) or key[:1] == "-" else float(amount)
        except ValueError:
            amounts[key] = math.nan
        if not 0 < amounts[key] < MOST:
            raise UserError(
                "--price should be an amount above 0 for an hour here, and one for others by a part of the name of "
                f"their GPU or machine, such as 2.5,H200=4, but has {part!r} in {text}",
                code="bad-price",
            )
    return amounts


def refuse_own_file(others: Sequence[str | Path], page: Path) -> None:
    """Refuse the file that is written to a page's folder as one to be shown beside: its trainings would be lost."""
    if any(Path(other).resolve() == (page / FILE).resolve() for other in others):
        raise UserError(
            f"--with should name files of other machines, but {page / FILE} is what this page is written to: copy it "
            "elsewhere, and give the copy",
            code="own-file",
        )


def check(names: Sequence[str], scale: str, others: Sequence[str], price: str, page: Path) -> None:
    """Refuse settings that do not fit together, and runs and files without a common accuracy.

    Args:
        names: of the runs.
        scale: of their values.
        others: files of other machines.
        price: see `prices`.
        page: folder that the page is written to.

    Raises:
        UserError: a price is of another form, a run's command cannot be rendered, the runs or those of a file are
            evaluated otherwise, or a file was not written by a benchmark, or will be by this one.
    """
    prices(price)
    refuse_own_file(others, page)
    loaded = {name: runs.load_run(name, scale) for name in names}
    for run in loaded.values():
        for stage in run.stages:
            adapter.load(run.framework).stated_settings(run, stage)
    first, *more = ((name, benchmarks_as_evaluated(run)) for name, run in loaded.items())
    for name, benchmarks in more:
        if benchmarks != first[1]:
            raise UserError(
                f"runs are compared by the time to the same accuracy, but {first[0]} is evaluated on "
                f"{', '.join(first[1])} and {name} on {', '.join(benchmarks)}: choose runs that are evaluated alike",
                code="other-benchmark",
            )
    if others:
        from analysis.benchmark import exchange  # only here: pandas takes its time

        for one in (one for file in others for one in exchange.read(Path(file))):
            exchange.check_evaluation(one, scale, first[1])
