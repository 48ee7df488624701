"""Read the graded samples of a checkpoint, and check whether two checkpoints can be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis import comparability, hash_order
from analysis.comparability import Result
from contracts import provenance, steps
from eval import benchmark as benchmarks
from eval import protocols
from eval import subset as subsets
from eval.score import check_complete, read_graded
from system.errors import UserError
from tasks import dataset_specs

SUBSET = "subset"
ACCEPTABLE = (*comparability.ACCEPTABLE, SUBSET)  # what may differ, or be missing, if the user accepts it
UNGRADABLE = 0.05  # largest share of ungradable completions that is compared


@dataclass(frozen=True)
class GradedCheckpoint:
    """The graded samples of one checkpoint, by benchmark, and the settings of each table ({} if not recorded)."""

    name: str
    tables: dict[str, pd.DataFrame]
    settings: dict[str, dict[str, Any]]
    refused: dict[str, str]  # benchmarks whose samples are incomplete, and why
    weights: frozenset[str] = frozenset()  # hashes of the model folders that were sampled, as far as recorded
    quantised: str = ""  # how they came quantised, such as Q4_1
    questions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by benchmark and problem, if imported

    def note_of_quantisation(self) -> list[str]:
        """What to say where its numbers are shown, of weights that came quantised."""
        return [f"the weights of {self.name} came quantised ({self.quantised})"] if self.quantised else []

    def result(self, benchmark: str) -> Result:
        """What is compared of one benchmark."""
        return Result(self.tables[benchmark], self.settings[benchmark])


def _settings(path: Path) -> dict[str, Any]:
    path = path.resolve()
    samples = path.parent.parent.parent / "samples" / path.parent.name / path.name
    return comparability.settings(provenance.read(path), provenance.read(samples))


def _questions(graded: Path, benchmark: str) -> dict[str, str]:
    """By problem, where the problems are stored with the samples, as imports have them."""
    problems = graded.resolve().parent.parent.parent / "problems"
    return benchmarks.questions(problems, benchmark) if (problems / f"{benchmark}.parquet").is_file() else {}


def _tables_in(path: Path) -> list[Path]:
    """A file, the tables of a folder, or those of the last of its folders step-<n>."""
    if path.is_file():
        return [path]
    checkpoints = list(steps.folders(path).values())
    files = sorted(path.glob("*.parquet")) or (sorted(checkpoints[-1].glob("*.parquet")) if checkpoints else [])
    if not files:
        others = ", ".join(sorted(child.name for child in path.glob("step-*/"))[:5])
        raise UserError(
            f"{path} should contain graded samples, <benchmark>.parquet or step-<number>/<benchmark>.parquet, but "
            f"has {f'only {others}' if others else 'none'}; name the folder with the samples, or run eval.grade first",
            code="missing-samples", path=str(path),
        )  # fmt: skip
    return files


def recorded_evaluation(path: Path) -> dict[str, Any] | None:
    """How graded samples were made, as `evaluation` of a run file has it; None where it is unknown."""
    files = _tables_in(path)
    sampling = [provenance.read(file).get("samples") or {} for file in files]
    settings = [(record["protocol"], record.get("overrides") or {}) for record in sampling if record.get("protocol")]
    if len(settings) < len(files) or any(each != settings[0] for each in settings):
        return None
    protocol, overrides = settings[0]
    if not isinstance(protocol, dict) or protocol.get("name") not in protocols.names():
        return None
    return {"protocol": protocol["name"], "override": overrides, "benchmarks": [file.stem for file in files]}


def read(path: Path, name: str | None = None) -> GradedCheckpoint:
    """Read graded samples.

    Args:
        path: a file, a folder of <benchmark>.parquet, or a folder of step-<n>, of which the last is read.
        name: of the checkpoint. By default, the path.

    Raises:
        UserError: there are no graded samples.
    """
    tables, settings, refused, questions, weights, quantised = {}, {}, {}, {}, set(), ""
    for file in _tables_in(path):
        graded = read_graded(file).sort_values(["problem_id", "repeat"], ignore_index=True)
        benchmark = str(graded["benchmark"].iloc[0]) if len(graded) else file.stem
        if benchmark in tables:
            raise UserError(
                f"{path} should have each benchmark once, but {file.name} is {benchmark} again; remove one",
                code="repeated-benchmark", benchmark=benchmark,
            )  # fmt: skip
        try:
            check_complete(graded, str(file))
        except UserError as error:
            refused[benchmark] = f"incomplete samples: {error}"
        tables[benchmark], settings[benchmark] = graded, _settings(file)
        questions[benchmark] = _questions(file, benchmark)
        record = provenance.read(file)
        weights |= set(filter(None, [provenance.sampled_weights(record)]))
        quantised = quantised or provenance.quantisation(record)
    return GradedCheckpoint(name or str(path), tables, settings, refused, frozenset(weights), quantised, questions)


def by_problem(graded: pd.DataFrame, values: pd.Series) -> npt.NDArray[Any]:
    """The values of a column with shape (problems, repeats). Problems are in the order of their ids."""
    return values.to_numpy().reshape(graded["problem_id"].nunique(), -1)


def correct(graded: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether each completion is correct, with shape (problems, repeats). Ungradable ones are not correct."""
    return by_problem(graded, graded["verdict"].eq("correct"))


def ungradable(graded: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether each completion could not be judged, with shape (problems, repeats)."""
    return by_problem(graded, graded["verdict"].eq("ungradable"))


def repeats(graded: pd.DataFrame) -> int:
    """Completions per problem."""
    return len(graded) // int(graded["problem_id"].nunique())


def same_repeats(first: pd.DataFrame, second: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables with as many completions per problem as the one with fewer.

    With unequal numbers the means of a problem are not exchangeable, even for the same model: 1 of 1 is common, 64 of
    64 is not. Which completions are kept is decided by a hash of problem and repeat, so that it is the same everywhere.
    """
    fewest = min(repeats(first), repeats(second))
    return _sampled_repeats(first, fewest), _sampled_repeats(second, fewest)


def _sampled_repeats(graded: pd.DataFrame, count: int) -> pd.DataFrame:
    if repeats(graded) == count:
        return graded
    names = zip(graded["problem_id"], graded["repeat"], strict=True)
    order = np.argsort([hash_order.key("repeat of", *pair) for pair in names])
    kept = graded.iloc[order].groupby("problem_id").head(count).index
    sample: pd.DataFrame = graded.loc[kept.sort_values()].reset_index(drop=True)
    return sample


def on_shared_problems(sides: Sequence[GradedCheckpoint], accepted: Collection[str]) -> list[GradedCheckpoint]:
    """All sides with those problems alone that each has, where a subset is accepted; else as they are.

    Golds and prompts of these are compared one by one, so that their records say no hash of all problems.
    """
    shared = list(sides)
    for name in set.intersection(*(set(side.tables) for side in sides)) if SUBSET in accepted else ():
        ids = [frozenset(side.tables[name]["problem_id"]) for side in sides]
        if (problems := frozenset.intersection(*ids)) and len(set(ids)) > 1:
            whole = published_sizes().get(name, len(frozenset.union(*ids)))
            shared = [_with_problems(side, name, problems, whole) for side in shared]
    return shared


def _with_problems(side: GradedCheckpoint, name: str, problems: Collection[str], whole: int) -> GradedCheckpoint:
    table = side.tables[name]
    settings = {key: None if key.endswith("_sha256") else value for key, value in side.settings[name].items()}
    settings["subset"] = {"size": len(problems), "whole": whole, "chosen": "all sides have them"}
    part = table[table["problem_id"].isin(problems)].reset_index(drop=True)
    return replace(side, tables=side.tables | {name: part}, settings=side.settings | {name: settings})


def with_same_completions(
    checkpoint: GradedCheckpoint, baseline: GradedCheckpoint, benchmarks: Iterable[str]
) -> list[str]:
    """The benchmarks with the same completions on both sides, as of a checkpoint compared with itself."""
    sides = (checkpoint.tables, baseline.tables)
    return [name for name in benchmarks if comparability.same_completions(*(tables[name] for tables in sides))]


def obstacles_of_side(
    side: GradedCheckpoint, benchmark: str, accepted: Collection[str], ungradable: float
) -> list[str]:
    """Why the samples of one side cannot be compared with anything: incomplete, mixed, too few, or too many ungradable.

    Args:
        side: one of the two.
        benchmark: its name.
        accepted: what is accepted, of ACCEPTABLE.
        ungradable: largest share of ungradable completions.
    """
    if benchmark not in side.tables:
        return [f"no samples of {side.name}"]
    if benchmark in side.refused:
        return [side.refused[benchmark]]
    graded, obstacles = side.tables[benchmark], []
    for column, plural in (("run", "runs"), ("step", "checkpoints")):
        if len(mixed := graded[column].dropna().unique()) > 1:
            obstacles.append(f"the samples of {side.name} are of several {plural}: {', '.join(map(str, mixed[:5]))}")
    if SUBSET not in accepted and not side.settings[benchmark].get("subset") and benchmark in published_sizes():
        problems, published = graded["problem_id"].nunique(), published_sizes()[benchmark]
        if problems != published:
            obstacles.append(f"{side.name} has {problems} of the {published} problems; --accept subset compares these")
    if (share := float(graded["verdict"].eq("ungradable").mean())) > ungradable:
        obstacles.append(
            f"{100 * share:.1f} % of the completions of {side.name} are ungradable, more than the "
            f"{100 * ungradable:g} % that --ungradable allows"
        )
    return obstacles


@cache
def published_sizes() -> dict[str, int]:
    """Number of problems of the published benchmarks of eval/benchmarks. Generated ones may be made in any number."""
    specs = {name: dataset_specs.find(name).spec for name in benchmarks.names()}
    return {name: int(spec["rows"]) for name, spec in specs.items() if "files" in spec}


def obstacles(
    checkpoint: GradedCheckpoint,
    baseline: GradedCheckpoint,
    benchmark: str,
    accepted: Collection[str] = (),
    ungradable: float = UNGRADABLE,
) -> list[str]:
    """Why two checkpoints cannot be compared on a benchmark.

    What is not recorded on both sides (prompts of imported generations) is no obstacle. See `unrecorded`. The
    rest is compared as for all results (analysis.comparability).

    Args:
        checkpoint: one side.
        baseline: the other.
        benchmark: its name.
        accepted: what may differ, of ACCEPTABLE.
        ungradable: largest share of ungradable completions on either side.

    Returns:
        The reasons in words. None if they can be compared.
    """
    sides = (checkpoint, baseline)
    if reasons := [reason for side in sides for reason in obstacles_of_side(side, benchmark, accepted, ungradable)]:
        return reasons
    return comparability.differences(baseline.result(benchmark), checkpoint.result(benchmark), accepted)


def notes_of_accepted(
    checkpoint: GradedCheckpoint, baseline: GradedCheckpoint, benchmarks: Iterable[str], accepted: Collection[str]
) -> list[str]:
    """Which differences were accepted, on which of the benchmarks that are compared."""
    names: dict[str, list[str]] = {}
    for name in benchmarks if accepted else ():
        for reason in comparability.differences(baseline.result(name), checkpoint.result(name)):
            names.setdefault(reason, []).append(name)
    return [
        f"{', '.join(listed)}: {reason}; this was accepted and may explain the difference of the scores"
        for reason, listed in names.items()
    ]


def unrecorded(checkpoint: GradedCheckpoint, baseline: GradedCheckpoint, benchmarks: Iterable[str]) -> list[str]:
    """What could not be checked because a side did not record it.

    Args:
        checkpoint: one side.
        baseline: the other.
        benchmarks: those compared.

    Returns:
        A sentence for each fact, with its benchmarks.
    """
    by_fact: dict[str, dict[str, None]] = {}
    for benchmark in benchmarks:
        for side in (checkpoint, baseline):
            for fact in comparability.unrecorded(side.result(benchmark)):
                by_fact.setdefault(f"{fact} of {side.name}", {})[benchmark] = None
    return [f"not recorded, so not compared: {fact} on {', '.join(names)}" for fact, names in by_fact.items()]


def conditions(checkpoint: GradedCheckpoint, benchmarks: Iterable[str]) -> list[str]:
    """How both sides were asked, and of which benchmarks only a part was (eval.subset)."""
    by_sentence: dict[str, list[str]] = {}
    for name in benchmarks:
        protocols, settings = checkpoint.tables[name]["protocol"].dropna(), checkpoint.settings[name]
        recorded = settings.get("protocol")
        prompt = f", prompt {recorded['prompt']}" if isinstance(recorded, dict) and "prompt" in recorded else ""
        part = f"; only the {label} problems, on both sides" if (label := subsets.label(settings)) else ""
        if len(protocols):
            by_sentence.setdefault(f"protocol {protocols.iloc[0]}{prompt}{part}", []).append(name)
    return [f"{', '.join(names)}: {sentence}" for sentence, names in by_sentence.items()]
