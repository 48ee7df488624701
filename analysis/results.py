"""Read the stored results of a run. An incomplete run is refused, never filled in."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis import comparability
from analysis.comparability import Result
from analysis.reference import in_order
from contracts import paths, provenance, tables
from contracts.errors import UserError
from contracts.paths import ResultsFolder, RunFolder
from contracts.steps import folders as step_folders
from contracts.steps import stage_folder
from contracts.text_safety import visible
from eval.benchmark import problems as stored_problems
from eval.benchmark import problems_hash, question
from eval.statistics import Correct
from grading.grade import DEFAULT
from tasks import registry
from tasks.problems import Problem

SAMPLE_COLUMNS = [
    "step", "benchmark", "problem_id", "repeat", "prompt", "completion", "finish_reason", "completion_tokens", "gold",
    "answer", "verdict", "grader", "protocol",
]  # fmt: skip
OF_SAMPLES = ["protocol", "n_problems", "k_repeats", "completion_tokens_mean", "completion_tokens_max"]  # of a score
IMPORTED = "imported:"  # prefix of the protocol of samples made by another harness
BASE = 0  # the step of the model before training
MAX_IN_MEMORY = 10**9  # bytes of the completions of a run; if there are more, they are read when they are asked for


@dataclass(frozen=True)
class RunResults:
    """The stored results of one run: everything that a report says about it comes from here.

    Attributes:
        name: `<recipe>/<run>/seed-<n>`.
        log: one row per training step.
        not_finite: per column of the log, the steps with NaN or an infinity. (A null means: not reported.)
        scores: one row per checkpoint and benchmark.
        graded: one row per completion, with the columns SAMPLE_COLUMNS; without `completion` if there are `texts`.
        texts: per checkpoint and benchmark, the table that completions are read from when they are asked for; empty if
            all of them fit into memory.
        provenance: per path of a record below the run's folder, its contents.
        rollouts: some of the completions of each training step.
        problem_rows: the problems of benchmarks that a report judges again or draws, if they are stored.
        other_graders: scores of the same samples by other graders, where `snakemake grade` made them.
        contamination: what the base model completes of its benchmarks' questions, if `snakemake contamination` asked.
        title: what a page calls the run (analysis.report.run_titles), if not by its name.
    """

    name: str
    log: pd.DataFrame
    not_finite: dict[str, list[int]]
    scores: pd.DataFrame
    graded: pd.DataFrame
    provenance: dict[str, dict[str, Any]]
    rollouts: pd.DataFrame = field(default_factory=lambda: tables.ROLLOUT.empty_table().to_pandas())
    other_graders: dict[str, pd.DataFrame] = field(default_factory=dict)
    contamination: pd.DataFrame = field(default_factory=pd.DataFrame)
    title: str = ""
    problem_rows: dict[str, dict[str, Problem]] = field(default_factory=dict)
    texts: Mapping[tuple[int, str], Path] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """What a page calls the run."""
        return self.title or self.name

    @property
    def steps(self) -> list[int]:
        """Evaluated checkpoints in order, the base model (0) first."""
        return sorted(int(step) for step in self.scores["step"].unique())

    @property
    def trained(self) -> bool:
        """Whether these are checkpoints of a training run. If not, they are imported generations."""
        return not self.log.empty

    @property
    def evaluated(self) -> bool:
        """Whether any checkpoint has samples. If not, this is a training log that was imported alone."""
        return not self.scores.empty

    def label(self, step: int) -> str:
        """The name of a checkpoint for readers."""
        if step == BASE:
            return "base model" if self.trained else "as imported"
        return f"step {step}"

    @property
    def last(self) -> int:
        """The last evaluated checkpoint."""
        return self.steps[-1]

    @property
    def benchmarks(self) -> list[str]:
        """Names of the benchmarks, in the order of `in_order`."""
        return in_order(self.scores["benchmark"].unique())

    def score(self, step: int, benchmark: str) -> pd.Series:
        """The row of the SCORE table for one checkpoint and benchmark."""
        row: pd.Series = self.scores.iloc[self._score_rows[step, benchmark][0]]
        return row

    def graders_band(self, step: int, benchmark: str) -> tuple[float, float] | None:
        """The lowest and highest accuracy over all graders of these samples; None if only one judged them."""
        own = self.score(step, benchmark)
        cells = [
            rows[(rows["step"] == step) & (rows["benchmark"] == benchmark)] for rows in self.other_graders.values()
        ]
        same = [float(row["avg_at_k"]) for rows in cells for _, row in rows.iterrows() if _same_samples(own, row)]
        found = [float(own["avg_at_k"]), *same]
        return (min(found), max(found)) if same else None

    @property
    def cells(self) -> list[tuple[int, str]]:
        """Checkpoints and benchmarks with samples, in order."""
        return list(self._sample_rows)

    def samples(self, step: int, benchmark: str) -> pd.DataFrame:
        """The graded completions of one checkpoint on one benchmark, with their texts."""
        rows = self.rows(step, benchmark)
        if "completion" in rows:
            return rows
        return rows.assign(completion=_completions(self.texts[step, benchmark], rows.index))

    def rows(self, step: int, benchmark: str) -> pd.DataFrame:
        """The same as `samples`, but without the texts if those would have to be read."""
        places = self._sample_rows[step, benchmark]
        if places[-1] - places[0] + 1 == len(places):  # as read from files, so that no text is copied
            places = slice(places[0], places[-1] + 1)
        rows: pd.DataFrame = self.graded.iloc[places]
        return rows

    def graded_record(self, step: int, benchmark: str) -> dict[str, Any]:
        """The provenance of one table of verdicts; empty if there is none."""
        return self.provenance.get(str(paths.record_name(paths.table(Path("graded"), step, benchmark))), {})

    def result(self, step: int, benchmark: str) -> Result:
        """What is compared of one checkpoint and benchmark: its samples, and how they were made."""
        graded, sampled = (
            self.provenance.get(str(paths.record_name(paths.table(Path(folder), step, benchmark))), {})
            for folder in ("graded", "samples")
        )
        return Result(self.rows(step, benchmark), comparability.settings(graded, sampled))

    def problems(self, benchmark: str) -> list[str]:
        """The problems of a benchmark, in the row order of `correct`."""
        return self._correct[self.steps[0], benchmark][0]

    def correct(self, step: int, benchmark: str) -> Correct:
        """Whether each completion is correct, with shape (problems, repeats). Ungradable ones are not correct."""
        return self._correct[step, benchmark][1]

    def truncated(self, step: int, benchmark: str) -> Correct:
        """Whether each completion's verdict is `truncated`, with shape (problems, repeats)."""
        return self._correct[step, benchmark][2]

    @cached_property
    def _correct(self) -> dict[tuple[int, str], tuple[list[str], Correct, Correct]]:
        found = {}
        for cell in self._sample_rows:
            rows = self.rows(*cell)
            problem, names = pd.factorize(rows["problem_id"], sort=True)
            order = np.lexsort((rows["repeat"], problem))
            right, cut = (
                rows["verdict"].eq(verdict).to_numpy(dtype=bool)[order].reshape(len(names), -1)
                for verdict in ("correct", "truncated")
            )
            found[int(cell[0]), str(cell[1])] = (list(map(str, names)), right, cut)
        return found

    @cached_property
    def _score_rows(self) -> dict[Any, Any]:
        return self.scores.groupby(["step", "benchmark"]).indices

    @cached_property
    def _sample_rows(self) -> dict[Any, Any]:
        return self.graded.groupby(["step", "benchmark"]).indices


def _same_samples(first: pd.Series, second: pd.Series) -> bool:
    """Whether two rows of scores are of the same samples, as far as scores tell: not of those before a new sampling."""
    return first[OF_SAMPLES].astype(str).equals(second[OF_SAMPLES].astype(str))


def labels(runs: Sequence[RunResults], rows: pd.DataFrame) -> list[str]:
    """The name for readers of each row's checkpoint, from its columns run and step."""
    by_name = {run.name: run for run in runs}
    return [by_name[name].label(step) for name, step in zip(rows["run"], rows["step"], strict=True)]


def valid_text(table: pa.Table) -> pa.Table:
    """Replace invalid UTF-8 in the text columns (a broken tokenizer can write it) by visible \\x escapes."""
    try:
        table.validate(full=True)
        return table
    except pa.ArrowInvalid:
        pass
    for position, column in enumerate(table.schema):
        if pa.types.is_string(column.type):
            raw = table.column(position).cast(pa.binary()).to_pylist()
            text = [None if value is None else value.decode("utf-8", "backslashreplace") for value in raw]
            table = table.set_column(position, column, pa.array(text, pa.string()))
    return table


def _completions(path: Path, index: pd.Index) -> pd.Series:
    """The completions in a table, with the index of the rows that were read from it before."""
    texts: pd.Series = valid_text(tables.read(path, tables.GRADED, ["completion"])).to_pandas()["completion"]
    if len(texts) != len(index):
        raise UserError(
            f"{path} should have {len(index):,} samples, as when they were first read, but has {len(texts):,}: it was "
            "made again meanwhile; make the report again"
        )
    return texts.set_axis(index)


def _read_log(path: Path) -> tuple[pd.DataFrame, dict[str, list[int]]]:
    table = tables.read(path, tables.TRAINING_LOG)
    not_finite = {}
    for column in table.schema:
        if pa.types.is_floating(column.type):
            bad = pc.fill_null(pc.invert(pc.is_finite(table[column.name])), False)
            if steps := table.filter(bad)["step"].to_pylist():
                not_finite[column.name] = steps
    return table.to_pandas().sort_values(["stage", "step"], ignore_index=True), not_finite


def _read_rollouts(folder: Path) -> pd.DataFrame:
    columns = ["stage", "step", "completion", "reward", "verdict", "completion_tokens"]
    # Listed, because a glob for the name alone leaves a broken link out.
    files = sorted(file for file in folder.glob(f"{stage_folder('*')}/*") if file.name == "rollouts.parquet")
    parts = [valid_text(tables.read(file, tables.ROLLOUT)).select(columns) for file in files]
    whole = pa.concat_tables(parts) if parts else tables.ROLLOUT.empty_table().select(columns)
    rollouts: pd.DataFrame = whole.to_pandas()
    return rollouts


def _read_provenance(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        str(path.relative_to(folder)): provenance.read_record(path) for path in sorted(folder.rglob("*provenance.json"))
    }


def _judged_again(data: Path, run: RunResults) -> dict[str, dict[str, Problem]]:
    """Problems by benchmark and name, of tasks with steps, pictures or a second verifier, if they are those graded."""
    found = {}
    for name in run.benchmarks:
        if not (data / f"{name}.parquet").is_file():
            continue
        rows = stored_problems(data, name).to_pylist()
        task = registry.get(rows[0]["task"])
        needed = task.step_module() or task.picture_module() or (task.graders and DEFAULT not in task.graders)
        if not needed:
            continue
        recorded = {run.graded_record(step, name).get("problems_sha256") for step in run.steps}
        if recorded == {problems_hash(data, name)}:
            found[name] = {
                row["problem_id"]: Problem(
                    row["problem_id"],
                    row["task"],
                    question(row),
                    row["answer"],
                    json.loads(row["meta"] or "{}"),
                )
                for row in rows
            }
    return found


def _listed(items: Sequence[str], most: int = 6) -> str:
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return "; ".join(items[:most]) + more


def _missing_cells(scores: pd.DataFrame, graded: pd.DataFrame, steps: set[int], benchmarks: set[str]) -> Iterator[str]:
    """Checkpoints and benchmarks without a score or without samples."""
    scored, sampled = (
        set(table[["step", "benchmark"]].drop_duplicates().itertuples(index=False, name=None))
        for table in (scores, graded)
    )
    for cell in itertools.product(sorted(steps), sorted(benchmarks)):
        if cell not in sampled or cell not in scored:
            what = "score" if cell in sampled else "graded samples"
            yield f"step {cell[0]} on {cell[1]} has no {what}"


def _incomplete_cells(run: RunResults) -> Iterator[str]:
    """Checkpoints and benchmarks whose samples differ from those of the base model or from what the score counts."""
    for benchmark in run.benchmarks:
        expected = set(run.rows(run.steps[0], benchmark)["problem_id"].unique())
        for step in run.steps:
            if wrong := _misfit(run.rows(step, benchmark), run.score(step, benchmark), expected):
                yield f"step {step} on {benchmark} {wrong}"
        asked = sorted({str(run.score(step, benchmark)["protocol"]) for step in run.steps})
        if len(asked) > 1:
            yield f"{benchmark} was sampled under different protocols ({', '.join(asked)})"


def _misfit(samples: pd.DataFrame, score: pd.Series, expected: set[str]) -> str:
    """How the samples of a cell differ from the expected problems or from its score; empty if they do not."""
    n, k, found = int(score["n_problems"]), int(score["k_repeats"]), set(samples["problem_id"].unique())
    if absent := sorted(expected - found):
        return f"lacks {len(absent)} of {len(expected)} problems, such as {absent[0]}"
    if extra := sorted(found - expected):
        return f"has {len(extra)} problems that the base model does not have, such as {extra[0]}"
    if samples.duplicated(["problem_id", "repeat"]).any() or len(samples) != n * k or len(expected) != n:
        return f"has {len(samples)} samples of {len(expected)} problems, but its score counts {n} × {k}"
    if any((samples["verdict"] == v).sum() != score[f"n_{v}"] for v in tables.VERDICTS):
        return "has other verdicts than its score counts; the score is of other samples"
    protocols = {*samples["protocol"].unique(), score["protocol"]}
    return f"mixes protocols ({', '.join(sorted(map(str, protocols)))})" if len(protocols) > 1 else ""


def check_one_measurement(run: RunResults) -> None:
    """Raise UserError if checkpoints of a run, whose differences a report shows, were measured in different ways."""
    for benchmark in run.benchmarks:
        first = run.result(run.steps[0], benchmark)
        for step in run.steps[1:]:
            if reasons := comparability.differences(first, run.result(step, benchmark)):
                raise UserError(
                    f"run {run.name} cannot be reported: step {step} on {benchmark} was measured in another way than "
                    f"step {run.steps[0]}: {'; '.join(reasons)}; delete the run's samples and graded folders to make "
                    "them again"
                )


def _tables(
    folder: RunFolder, name: str
) -> tuple[pd.DataFrame, dict[str, list[int]], pd.DataFrame, pd.DataFrame, dict[tuple[int, str], Path]]:
    """The training log with its non-finite values, the scores, and what `_graded` reads of a run."""
    log_path = folder.training_log
    if not folder.scores.is_file():
        raise UserError(f"run {name} has no {folder.scores.name} in {folder.path}; train and evaluate it first")
    scores = valid_text(tables.read(folder.scores, tables.SCORE)).to_pandas()
    if not (_imported(scores) or log_path.is_file()):
        raise UserError(f"run {name} has no {log_path.name} in {folder.path}; train and evaluate it first")
    log, not_finite = _read_log(log_path) if log_path.is_file() else (tables.TRAINING_LOG.empty_table().to_pandas(), {})
    files = paths.tables(folder.graded)
    if not files:
        raise UserError(f"run {name} has no graded samples in {folder.graded}; evaluate it first")
    graded, texts = _graded(files)
    if others := sorted({str(n) for part in (log, scores, graded) for n in part["run"].unique()} - {name}):
        raise UserError(
            f"the tables in {folder.path} should name run {name}, but name {_listed(others)} instead; rename it"
        )
    return log, not_finite, scores, graded.drop(columns="run"), texts


def _graded(files: Sequence[Path]) -> tuple[pd.DataFrame, dict[tuple[int, str], Path]]:
    """The graded samples of a run; if they are many, without their texts, but with the tables to read those from."""
    columns = ["run", *SAMPLE_COLUMNS]
    without = [column for column in columns if column != "completion"]
    parts = {path: valid_text(tables.read(path, tables.GRADED, without)) for path in files}
    texts = {(part["step"][0].as_py(), part["benchmark"][0].as_py()): path for path, part in parts.items() if len(part)}
    if sum(tables.size(path, "completion") for path in files) <= MAX_IN_MEMORY:
        texts = {}
        parts = {path: valid_text(tables.read(path, tables.GRADED, columns)) for path in files}
    return pa.concat_tables(parts.values()).to_pandas(), texts


def _imported_log(folder: RunFolder, name: str) -> RunResults:
    """A training log that was made elsewhere, without samples of checkpoints."""
    found = _log_alone(folder, name)
    if others := sorted({str(run) for run in found.log["run"].unique()} - {name}):
        raise UserError(
            f"{folder.training_log} should name run {name}, but names {_listed(others)}; import it as {name}"
        )
    return found


def _log_alone(folder: RunFolder, name: str) -> RunResults:
    log, not_finite = _read_log(folder.training_log)
    scores, graded = tables.SCORE.empty_table().to_pandas(), tables.GRADED.empty_table().select(SAMPLE_COLUMNS)
    records, rollouts = _read_provenance(folder.path), _read_rollouts(folder.path)
    return RunResults(name, log, not_finite, scores, graded.to_pandas(), records, rollouts)


def load_log(results: Path, name: str) -> RunResults:
    """Read the log and rollouts of a run without evaluated checkpoints, such as one that was ended.

    Args:
        results: folder of one scale, such as results/demo.
        name: of the run, its folder below results/runs.
    """
    return _log_alone(ResultsFolder(results).run(name), name)


def _imported(scores: pd.DataFrame) -> bool:
    """Whether the samples were made elsewhere, so that there is no training log."""
    return bool(scores["protocol"].str.startswith(IMPORTED).all())


def load_results(results: Path, name: str, benchmarks: Sequence[str] = ()) -> RunResults:
    """Read one run and check that nothing is missing.

    Args:
        results: folder of one scale, such as results/demo.
        name: of the run, its folder below results/runs. An imported training log needs no samples.
        benchmarks: those that every checkpoint must have. By default, those that any checkpoint has.

    Raises:
        UserError: there is no such run, no base model, or something is missing in the grid of checkpoints, benchmarks,
            problems and repeats. The message names it.
    """
    runs = results / "runs"
    folder = ResultsFolder(results).run(name)
    if not folder.scores.is_file() and "imported" in provenance.read(folder.training_log):
        return _imported_log(folder, name)
    if not folder.scores.is_file():
        known = sorted(str(path.parent.relative_to(runs)) for path in runs.rglob("scores.parquet"))
        inside = [run for run in known if run.startswith(f"{name}/")]
        if inside or not folder.path.is_dir():
            raise UserError(f"there is no run {name} under {runs}; there are: {', '.join(inside or known) or 'none'}")
    log, not_finite, scores, graded, texts = _tables(folder, name)
    steps = set(scores["step"]) | set(step_folders(folder.graded)) | set(step_folders(folder.path / "checkpoints"))
    wanted = set(benchmarks) or set(scores["benchmark"]) | set(graded["benchmark"].unique())
    if strange := [str(n) for n in (name, *sorted(wanted)) if n != visible(n)]:
        raise UserError(f"names of runs and benchmarks should be readable, but {visible(strange[0])} is not; rename it")
    missing = [] if BASE in steps or _imported(scores) else ["step 0, the base model, was not evaluated"]
    if scores.duplicated(["step", "benchmark"]).any():
        missing.append("scores.parquet scores a checkpoint twice on the same benchmark")
    if log.empty and not _imported(scores):
        missing.append("training_log.parquet has no rows")
    missing += _missing_cells(scores, graded, steps, wanted)
    if not missing:
        scores = scores[scores["benchmark"].isin(wanted)].reset_index(drop=True)
        if not (asked_for := graded["benchmark"].isin(wanted)).all():
            graded = graded[asked_for].reset_index(drop=True)
        others = {
            grader: valid_text(tables.read(other.scores, tables.SCORE)).to_pandas()
            for grader, other in folder.other_graders.items()
        }
        records, rollouts = _read_provenance(folder.path), _read_rollouts(folder.path)
        asked = ResultsFolder(results).contamination(name)
        probed = pd.read_csv(asked) if asked.is_file() else pd.DataFrame()
        run = RunResults(name, log, not_finite, scores, graded, records, rollouts, others, probed, texts=texts)
        run.problem_rows.update(_judged_again(ResultsFolder(results).benchmarks, run))
        missing = [*_incomplete_cells(run)]
    if missing:
        raise UserError(
            f"run {name} is incomplete and cannot be reported: {_listed(missing)}; delete {folder.graded} to grade "
            f"it again, and delete checkpoints that the run file no longer names from {folder.path / 'checkpoints'}"
        )
    return run
