"""What a benchmark is asked for, checked before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from contracts.paths import RunFolder
from contracts.run_file import Run
from frameworks import adapter
from recipes import runs
from recipes.run_sets import run_set_name
from system.errors import UserError

RUNS = ("crosscheck",)  # the same run through every framework


def run_names(named: Sequence[str], scale: str) -> list[str]:
    """The runs of recipes and runs that have values at a scale; those that are neither are left to the workflow."""
    known = runs.run_names(scale)
    return [run for name in named for run in ([k for k in known if k.split("/")[0] == name] or [name])]


def folder_name(names: Sequence[str], scale: str) -> str:
    """What the folder of the page is called."""
    return run_set_name(names, {}, run_names(RUNS, scale))


def timed_files(folder: RunFolder, run: Run, bare: bool) -> list[Path]:
    """What the training in a folder writes that is timed; with `bare` also that by the framework's own command."""
    return [folder.training_log, *(folder.bare_training(stage.number) for stage in run.stages if bare)]


def check(names: Sequence[str], scale: str, others: Sequence[str]) -> None:
    """Refuse settings that do not fit together, and runs and files without a common accuracy.

    Args:
        names: of the runs.
        scale: of their values.
        others: files of other machines.

    Raises:
        UserError: a run's command cannot be rendered, the runs or a file's are evaluated on other benchmarks, or a
            file was not written by a benchmark.
    """
    loaded = {name: runs.load_run(name, scale) for name in names}
    for run in loaded.values():
        for stage in run.stages:
            adapter.load(run.framework).stated_settings(run, stage)
    first, *more = ((name, sorted(run.evaluation["benchmarks"])) for name, run in loaded.items())
    for name, benchmarks in more:
        if benchmarks != first[1]:
            raise UserError(
                f"runs are compared by the time to the same accuracy, but {first[0]} is evaluated on "
                f"{', '.join(first[1])} and {name} on {', '.join(benchmarks)}: choose runs with the same benchmarks",
                code="other-benchmark",
            )
    if others:
        from analysis.benchmark import trainings  # only here: pandas takes its time

        protocol = loaded[first[0]].evaluation["protocol"]
        for one in (one for file in others for one in trainings.read(Path(file))):
            trainings.check_evaluation(one, scale, [f"{benchmark} by {protocol}" for benchmark in first[1]])
