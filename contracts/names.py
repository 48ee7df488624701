"""The names in a run file, each looked up in the registry that it points to, before anything is made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from contracts.errors import UserError
from eval import protocols

if TYPE_CHECKING:
    from contracts.run_file import Run

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "eval" / "benchmarks"


def check(run: Run) -> None:
    """Raise UserError, with the file and the key, for a name in the run file that there is nothing of."""

    def known(key: str, name: str, names: Iterable[str], where: str) -> None:
        names = list(names)
        if name not in names:
            raise UserError(f"{_shown(run)}: {key}: '{name}' is not in {where}; there are: {', '.join(names)}")

    from recipes import models
    from tasks import data_registry, prompts

    known("prompt", run.prompt, prompts.library(), "the prompts (tasks)")
    known(f"{run.scale}.model", run.model, models.names(), "recipes/models.yaml")
    for stage in run.stages:
        known(f"{run.scale}.dataset", stage.dataset, data_registry.training_sets(), "the training sets (tasks)")
    evaluation = f"{run.scale}.evaluation"
    for name in run.evaluation["benchmarks"]:
        benchmarks = sorted(file.stem for file in BENCHMARKS.glob("*.yaml"))
        known(f"{evaluation}.benchmarks", name, benchmarks, "eval/benchmarks")
    known(f"{evaluation}.protocol", run.evaluation["protocol"], protocols.names(), "eval/protocols.yaml")
    try:
        protocols.load(run.evaluation["protocol"], run.evaluation.get("override"))
    except UserError as error:
        raise UserError(f"{_shown(run)}: {evaluation}.override: {error}") from None


def _shown(run: Run) -> Path:
    return run.file.relative_to(ROOT) if run.file.is_relative_to(ROOT) else run.file
