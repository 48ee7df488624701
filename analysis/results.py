"""A run's results as they lie on disk, read whole: a run with a hole in it is refused, never filled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.text_safety import visible
from contracts import provenance, tables
from contracts.errors import UserError
from contracts.steps import folders as step_folders
from contracts.steps import stage_folder
from eval.statistics import Correct

SAMPLE_COLUMNS = [
    "step", "benchmark", "problem_id", "repeat", "prompt", "completion", "finish_reason", "completion_tokens", "gold",
    "answer", "verdict", "grader", "protocol",
]  # fmt: skip
IMPORTED = "imported:"  # how the protocol of samples begins that another harness made
BASE = 0  # the step of the model before any training

BENCHMARKS = ("gsm8k", "math500", "minerva_math", "olympiadbench", "aime24", "amc23")  # the published column order


def in_order(benchmarks: Iterable[str]) -> list[str]:
    """Benchmarks in the published column order; those that the published tables lack come after, by name."""
    place = {name: position for position, name in enumerate(BENCHMARKS)}
    return sorted(benchmarks, key=lambda name: (place.get(name, len(place)), name))


@dataclass(frozen=True)
class Run:
    """Everything that the report says about one run comes from here.

    `log` has one row per training step, `scores` one per checkpoint and benchmark, `graded` one per completion (the
    columns SAMPLE_COLUMNS), `rollouts` some of the completions of each training step. `not_finite` names the
    steps at which a column of the log holds NaN or an infinity, which a null (not reported) is not. `provenance` maps
    a record's path below the run's folder to its contents.
    """

    name: str
    log: pd.DataFrame
    not_finite: dict[str, list[int]]
    scores: pd.DataFrame
    graded: pd.DataFrame
    provenance: dict[str, dict[str, Any]]
    rollouts: pd.DataFrame = default(default_factory=lambda: tables.ROLLOUT.empty_table().to_pandas())

    @property
    def steps(self) -> list[int]:
        """Evaluated checkpoints in order, the base model (0) first."""
        return sorted(int(step) for step in self.scores["step"].unique())

    @property
    def trained(self) -> bool:
        """Whether these are checkpoints of a training run; else they are generations made elsewhere."""
        return not self.log.empty

    def label(self, step: int) -> str:
        """What a checkpoint is called."""
        if step == BASE:
            return "base model" if self.trained else "as imported"
        return f"step {step}"

    @property
    def last(self) -> int:
        """The last evaluated checkpoint."""
        return self.steps[-1]

    @property
    def benchmarks(self) -> list[str]:
        """Names of the benchmarks: those of the published tables in their order, then others by name."""
        return in_order(self.scores["benchmark"].unique())

    def score(self, step: int, benchmark: str) -> pd.Series:
        """The row of the SCORE table for one checkpoint and benchmark."""
        return self.scores.iloc[self._score_rows[step, benchmark][0]]

    def samples(self, step: int, benchmark: str) -> pd.DataFrame:
        """The graded completions of one checkpoint on one benchmark."""
        return self.graded.iloc[self._sample_rows[step, benchmark]]

    def problems(self, benchmark: str) -> list[str]:
        """The problems of a benchmark, in the order in which `correct` has them."""
        return self._correct[self.steps[0], benchmark][0]

    def correct(self, step: int, benchmark: str) -> Correct:
        """Whether each completion was right, of shape (problems, repeats); what could not be graded was not."""
        return self._correct[step, benchmark][1]

    @cached_property
    def _correct(self) -> dict[tuple[int, str], tuple[list[str], Correct]]:
        found = {}
        for cell in self._sample_rows:
            chosen = self.graded.iloc[self._sample_rows[cell]]
            ordered = chosen[["problem_id", "repeat", "verdict"]].sort_values(["problem_id", "repeat"])
            names = list(dict.fromkeys(ordered["problem_id"].astype(str)))
            right = ordered["verdict"].eq("correct").to_numpy(dtype=bool)
            found[int(cell[0]), str(cell[1])] = (names, right.reshape(len(names), -1))
        return found

    @cached_property
    def _score_rows(self) -> dict[Any, Any]:
        return self.scores.groupby(["step", "benchmark"]).indices

    @cached_property
    def _sample_rows(self) -> dict[Any, Any]:
        return self.graded.groupby(["step", "benchmark"]).indices


def valid_text(table: pa.Table) -> pa.Table:
    """Replace what is not UTF-8 in the text columns (a broken tokenizer can write it) by visible \\x escapes."""
    try:
        table.validate(full=True)
        return table
    except pa.ArrowInvalid:
        pass
    for position, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            raw = table.column(position).cast(pa.binary()).to_pylist()
            text = [None if value is None else value.decode("utf-8", "backslashreplace") for value in raw]
            table = table.set_column(position, field, pa.array(text, pa.string()))
    return table


def _read_log(path: Path) -> tuple[pd.DataFrame, dict[str, list[int]]]:
    table = tables.read(path, tables.TRAINING_LOG)
    not_finite = {}
    for field in table.schema:
        if pa.types.is_floating(field.type):
            bad = pc.fill_null(pc.invert(pc.is_finite(table[field.name])), False)
            if steps := table.filter(bad)["step"].to_pylist():
                not_finite[field.name] = steps
    return table.to_pandas().sort_values(["stage", "step"], ignore_index=True), not_finite


def _read_rollouts(folder: Path) -> pd.DataFrame:
    columns = ["stage", "step", "completion", "reward", "verdict", "completion_tokens"]
    files = sorted(folder.glob(f"{stage_folder('*')}/rollouts.parquet"))
    parts = [valid_text(tables.read(file, tables.ROLLOUT)).select(columns) for file in files]
    whole = pa.concat_tables(parts) if parts else tables.ROLLOUT.empty_table().select(columns)
    return whole.to_pandas()


def _read_provenance(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        str(path.relative_to(folder)): provenance.read_record(path) for path in sorted(folder.rglob("*provenance.json"))
    }


def _listed(items: Sequence[str], most: int = 6) -> str:
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return "; ".join(items[:most]) + more


def _missing_cells(scores: pd.DataFrame, graded: pd.DataFrame, steps: set[int], benchmarks: set[str]) -> list[str]:
    """Every checkpoint needs a score and samples on every benchmark."""
    scored = set(zip(scores["step"], scores["benchmark"], strict=True))
    sampled = set(graded.groupby(["step", "benchmark"]).groups)
    holes = []
    for step in sorted(steps):
        for benchmark in sorted(benchmarks):
            if (step, benchmark) not in sampled:
                holes.append(f"step {step} on {benchmark} has no graded samples")
            elif (step, benchmark) not in scored:
                holes.append(f"step {step} on {benchmark} has no score")
    return holes


def _incomplete_cells(run: Run) -> list[str]:
    """Every problem of the base model's samples is there k times at every checkpoint, and the scores count the same."""
    holes = []
    for benchmark in run.benchmarks:
        expected = set(run.samples(run.steps[0], benchmark)["problem_id"])
        for step in run.steps:
            place, samples, score = (
                f"step {step} on {benchmark}",
                run.samples(step, benchmark),
                run.score(step, benchmark),
            )
            n, k = int(score["n_problems"]), int(score["k_repeats"])
            if absent := sorted(expected - set(samples["problem_id"])):
                holes.append(f"{place} lacks {len(absent)} of {len(expected)} problems, such as {absent[0]}")
            elif extra := sorted(set(samples["problem_id"]) - expected):
                holes.append(f"{place} has {len(extra)} problems that the base model was not asked, such as {extra[0]}")
            elif samples.duplicated(["problem_id", "repeat"]).any() or len(samples) != n * k or len(expected) != n:
                holes.append(
                    f"{place} has {len(samples)} samples of {len(expected)} problems where its score counts {n} × {k}"
                )
            elif any((samples["verdict"] == v).sum() != score[f"n_{v}"] for v in tables.VERDICTS):
                holes.append(f"{place} has verdicts that its score does not count: it was made from other samples")
            elif (protocols := set(samples["protocol"])) != {score["protocol"]} or len(protocols) != 1:
                holes.append(
                    f"{place} mixes protocols ({', '.join(sorted(map(str, protocols | {score['protocol']})))})"
                )
        asked = sorted({str(run.score(step, benchmark)["protocol"]) for step in run.steps})
        if len(asked) > 1:
            holes.append(f"{benchmark} was asked under protocols that cannot be compared ({', '.join(asked)})")
    return holes


def load_run(results: Path, name: str, benchmarks: Sequence[str] = ()) -> Run:
    """Read one run; `benchmarks` are those that must be there (default: those that any checkpoint has).

    Raises UserError, naming what is missing, if there is no such run, no base model, or any hole in the grid of
    checkpoints, benchmarks, problems and repeats.
    """
    runs = results / "runs"
    folder = runs / name
    log_path, scores_path = folder / "training_log.parquet", folder / "scores.parquet"
    if not scores_path.is_file():
        known = sorted(str(path.parent.relative_to(runs)) for path in runs.rglob("scores.parquet"))
        inside = [run for run in known if run.startswith(f"{name}/")]
        if inside or not folder.is_dir():
            raise UserError(f"there is no run {name} under {runs}; there are: {', '.join(inside or known) or 'none'}")
        raise UserError(f"the run {name} lacks {scores_path.name} in {folder}; train and evaluate it first")
    scores = valid_text(tables.read(scores_path, tables.SCORE)).to_pandas()
    imported = scores["protocol"].str.startswith(IMPORTED).all()  # made elsewhere: there is no log to be had
    if not (imported or log_path.is_file()):
        raise UserError(f"the run {name} lacks {log_path.name} in {folder}; train and evaluate it first")
    log, not_finite = _read_log(log_path) if log_path.is_file() else (tables.TRAINING_LOG.empty_table().to_pandas(), {})
    graded_folders = step_folders(folder / "graded")
    files = [path for step in sorted(graded_folders) for path in sorted(graded_folders[step].glob("*.parquet"))]
    if not files:
        raise UserError(f"the run {name} has no graded samples in {folder / 'graded'}; evaluate it first")
    parts = [valid_text(tables.read(path, tables.GRADED)).select(["run", *SAMPLE_COLUMNS]) for path in files]
    graded = pa.concat_tables(parts).to_pandas()
    if strangers := sorted({str(n) for part in (log, scores, graded) for n in part["run"].unique()} - {name}):
        raise UserError(f"the tables in {folder} name another run ({_listed(strangers)}); they should all name {name}")
    steps = set(scores["step"]) | set(graded_folders) | set(step_folders(folder / "checkpoints"))
    wanted = set(benchmarks) or set(scores["benchmark"]) | set(graded["benchmark"])
    if strange := [str(n) for n in (name, *sorted(wanted)) if n != visible(n)]:
        raise UserError(f"names of runs and benchmarks should be readable, but {visible(strange[0])} is not; rename it")
    holes = [] if BASE in steps or imported else ["step 0, the base model, was not evaluated"]
    if scores.duplicated(["step", "benchmark"]).any():
        holes.append("scores.parquet scores a checkpoint twice on the same benchmark")
    if log.empty and not imported:
        holes.append("training_log.parquet has no rows")
    holes += _missing_cells(scores, graded, steps, wanted)
    if not holes:
        inside = scores["benchmark"].isin(wanted)
        scores, graded = scores[inside], graded[graded["benchmark"].isin(wanted)]
        records = _read_provenance(folder)
        run = Run(
            name, log, not_finite, scores.reset_index(drop=True), graded.reset_index(drop=True), records,
            _read_rollouts(folder),
        )  # fmt: skip
        holes = _incomplete_cells(run)
    if holes:
        raise UserError(
            f"the run {name} has a hole and is not reported: {_listed(holes)}; delete {folder / 'graded'} to have it "
            f"graded again, and what the run file no longer names from {folder / 'checkpoints'}"
        )
    return run
