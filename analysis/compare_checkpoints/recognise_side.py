"""What a name or a path means as one side of a comparison: `crosszero compare A B`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.compare_checkpoints import published_baselines
from analysis.compare_checkpoints.comparison_request import STORED, is_to_be_model
from contracts import model_folder, seeds, steps, tables
from contracts.paths import ResultsFolder
from eval.importers.recognise_file import split_model
from recipes.runs import run_names
from system.errors import UserError
from system.unknown_names import files_beside, meant

GENERATIONS, GRADED, PUBLISHED, STORED_STEP, MODEL, HUB, TRAININGS = (
    "generations made elsewhere", "graded samples", "published figures", "a checkpoint of a run here",
    "the folder of a model", "a model on the hub", "the trainings of a run",
)  # fmt: skip
TO_EVALUATE = (STORED_STEP, MODEL, HUB)  # the workflow makes what is missing of their samples
HUB_ID = re.compile(r"\w[\w.-]*/[\w.-]+")
RUN_ID = re.compile(r"(?P<run>[^/]+/[^/]+)/seed-\d+")


@dataclass(frozen=True)
class RecognisedSide:
    """One name of a comparison.

    Attributes:
        typed: as the user wrote it.
        kind: one of the above.
        name: what stands for it in the comparison: a path, or a name here or on the hub.
    """

    typed: str
    kind: str
    name: str


def recognise_side(typed: str, results: ResultsFolder) -> RecognisedSide:
    """What a side is: a path by its content, else a name.

    Args:
        typed: as the user wrote it.
        results: of the scale, whose runs have names.

    Raises:
        UserError: it is neither; the message has the nearest names.
    """
    path, model = split_model(typed)
    if model and path.is_file():
        return RecognisedSide(typed, GENERATIONS, f"{path.resolve()}#{model}")
    if path.exists():
        return RecognisedSide(typed, *_path_kind(path, results))
    runs = run_names()
    if (step := STORED.fullmatch(typed)) and _is_run(step["run"], runs):
        return RecognisedSide(typed, STORED_STEP, typed)
    if _is_run(typed, runs) or ((trained := RUN_ID.fullmatch(typed)) and _is_run(trained["run"], runs)):
        return RecognisedSide(typed, TRAININGS, typed)
    if HUB_ID.match(typed) and results.run(typed).graded.is_dir():  # of generations or a model, by its id
        return RecognisedSide(typed, GRADED, str(results.run(typed).graded))
    published = published_baselines.load()
    if typed in published:
        return RecognisedSide(typed, PUBLISHED, typed)
    groups = {name.split("/")[0] for name in [*runs, *published]}
    if HUB_ID.fullmatch(typed) and typed.split("/")[0] not in groups:
        return RecognisedSide(typed, HUB, typed)
    of_recipe = [name for name in runs if name.startswith(f"{typed}/")]
    near = meant(typed, [*runs, *published, *files_beside(typed)])
    hint = f": name one of its runs, such as {of_recipe[0]}" if of_recipe else near
    raise UserError(
        f"'{typed}' is no file or folder, no run or checkpoint here such as {runs[0]}/seed-0/step-0, no published "
        f"baseline and no id of a model on the hub{hint}",
        code="unknown-name",
        name=typed,
    )


def _is_run(name: str, runs: list[str]) -> bool:
    return name.partition("@")[0] in runs


def _path_kind(path: Path, results: ResultsFolder) -> tuple[str, str]:
    """The kind of a file or folder, and the name that stands for it."""
    whole = path.resolve()
    if is_to_be_model(path):
        runs = (results.path / "runs").resolve()
        stored = str(whole.relative_to(runs)).replace("/checkpoints/", "/") if whole.is_relative_to(runs) else ""
        if STORED.fullmatch(stored) and _is_run(seeds.run_of(stored.rpartition("/")[0]), run_names()):
            return STORED_STEP, stored
        model_folder.check_files(path)
        return MODEL, str(whole)
    if path.is_file():
        return (GRADED if _is_graded(path) else GENERATIONS), str(whole)
    folder = whole / "graded" if (whole / "graded").is_dir() else whole
    inside = [*folder.glob("*.parquet"), *(file for step in steps.folders(folder).values() for file in step.iterdir())]
    if any(_is_graded(file) for file in inside if file.suffix == ".parquet"):
        return GRADED, str(folder)
    return GENERATIONS, str(whole)


def _is_graded(file: Path) -> bool:
    try:
        return set(tables.GRADED.names) - tables.ADDED <= set(pq.read_schema(file).names)
    except (pa.ArrowException, OSError):
        return False


def check_sides(sides: list[list[RecognisedSide]]) -> None:
    """Refuse a comparison that means nothing.

    Args:
        sides: the first and the second one, each with one name or several.

    Raises:
        UserError: a training run against a single checkpoint, published figures that are not the first side, or
            several of what is one thing.
    """
    kinds = {side.kind for names in sides for side in names}
    if TRAININGS in kinds and len(kinds) > 1:
        recipe, other = (
            next(s for names in sides for s in names if (s.kind == TRAININGS) is so) for so in (True, False)
        )
        raise UserError(
            f"{recipe.typed} is {TRAININGS} and {other.typed} is {other.kind}: a recipe is compared with a recipe, and "
            f"one of its checkpoints ({recipe.typed}/seed-0/step-N) with this",
            code="mixed-sides", kinds=sorted(kinds),
        )  # fmt: skip
    if any(side.kind == PUBLISHED for side in sides[1]):
        raise UserError(
            f"published figures are a baseline: name them first, crosszero compare {sides[1][0].typed} "
            f"{sides[0][0].typed}",
            code="published-second",
        )  # fmt: skip
    if any(len(names) > 1 for names in sides) and kinds - {TRAININGS, GRADED, GENERATIONS}:
        raise UserError(
            "several names on a side are the training runs of a recipe, each with its seed: runs, graded samples or "
            f"generations, not {', '.join(sorted(kinds - {TRAININGS, GRADED, GENERATIONS}))}",
            code="mixed-sides", kinds=sorted(kinds),
        )  # fmt: skip
