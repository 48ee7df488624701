"""Read the stored results of a run. An incomplete run is refused, never filled in."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.comparability import IMPORTED
from analysis.results import BASE, SAMPLE_COLUMNS, TEXTS, RunResults, valid_text
from contracts import ended_training, paths, provenance, tables
from contracts.paths import MODELS, ResultsFolder, RunFolder
from contracts.steps import folders as step_folders
from contracts.steps import stage_folder
from eval.benchmark import problems as stored_problems
from eval.benchmark import problems_hash, question
from grading.verdicts import DEFAULT
from system.errors import UserError
from system.text_safety import visible
from tasks import registry
from tasks.problems import Problem

MAX_IN_MEMORY = 10**9  # bytes of the completions of a run; if there are more, they are read when they are asked for


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


def _problems_to_judge_again(data: Path, run: RunResults) -> dict[str, dict[str, Problem]]:
    """Problems by benchmark and name, of tasks with steps, pictures or a second verifier, if they are those graded."""
    by_benchmark = {}
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
            by_benchmark[name] = {
                row["problem_id"]: Problem(
                    row["problem_id"],
                    row["task"],
                    question(row),
                    row["answer"],
                    json.loads(row["meta"] or "{}"),
                )
                for row in rows
            }
    return by_benchmark


def _short_list(items: Sequence[str], most: int = 6) -> str:
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
            if wrong := _cell_misfit(run.rows(step, benchmark), run.score(step, benchmark), expected):
                yield f"step {step} on {benchmark} {wrong}"
        protocols = sorted({str(run.score(step, benchmark)["protocol"]) for step in run.steps})
        if len(protocols) > 1:
            yield f"{benchmark} was sampled under different protocols ({', '.join(protocols)})"


def _cell_misfit(samples: pd.DataFrame, score: pd.Series, expected: set[str]) -> str:
    """How the samples of a cell differ from the expected problems or from its score; empty if they do not."""
    n, k, problems = int(score["n_problems"]), int(score["k_repeats"]), set(samples["problem_id"].unique())
    if absent := sorted(expected - problems):
        return f"lacks {len(absent)} of {len(expected)} problems, such as {absent[0]}"
    if extra := sorted(problems - expected):
        return f"has {len(extra)} problems that the base model does not have, such as {extra[0]}"
    if samples.duplicated(["problem_id", "repeat"]).any() or len(samples) != n * k or len(expected) != n:
        return f"has {len(samples)} samples of {len(expected)} problems, but its score counts {n} × {k}"
    if any((samples["verdict"] == v).sum() != score[f"n_{v}"] for v in tables.VERDICTS):
        return "has other verdicts than its score counts; the score is of other samples"
    protocols = {*samples["protocol"].unique(), score["protocol"]}
    return f"mixes protocols ({', '.join(sorted(map(str, protocols)))})" if len(protocols) > 1 else ""


class _StoredTables(NamedTuple):
    """The tables of a run: its training log with the non-finite values, its scores, and what `_read_graded` reads."""

    log: pd.DataFrame
    not_finite: dict[str, list[int]]
    scores: pd.DataFrame
    graded: pd.DataFrame
    texts: dict[tuple[int, str], Path]


def _read_tables(folder: RunFolder, name: str) -> _StoredTables:
    log_path = folder.training_log
    if not folder.scores.is_file():
        raise _missing_table(name, folder.scores.name, folder.path)
    scores = valid_text(tables.read(folder.scores, tables.SCORE)).to_pandas()
    if not (_is_untrained(name, scores) or log_path.is_file()):
        raise _missing_table(name, log_path.name, folder.path)
    log, not_finite = _read_log(log_path) if log_path.is_file() else (tables.TRAINING_LOG.empty_table().to_pandas(), {})
    files = paths.tables(folder.graded)
    if not files:
        raise UserError(
            f"run {name} has no graded samples in {folder.graded}; evaluate it first", code="missing-samples", run=name
        )
    _check_scored(folder, files)
    graded, texts = _read_graded(files)
    if others := sorted({str(n) for part in (log, scores, graded) for n in part["run"].unique()} - {name}):
        raise UserError(
            f"the tables in {folder.path} should name run {name}, but name {_short_list(others)} instead; rename it",
            code="other-run", run=name, names=others,
        )  # fmt: skip
    return _StoredTables(log, not_finite, scores, graded.drop(columns="run"), texts)


def _check_scored(folder: RunFolder, files: Sequence[Path]) -> None:
    """Refuse verdicts that were replaced, record and all, after they were scored."""
    scored = provenance.read(folder.scores).get("scored", [])
    recorded = {tuple(Path(entry["graded"]).parts[-2:]): entry.get("graded_sha256") for entry in scored}
    for file in files:
        if recorded.get(file.parts[-2:]) not in (None, provenance.sha256(file)):
            raise UserError(
                f"{folder.scores} has scores of another table than {file}, replaced since: delete the scores to have "
                "them made again",
                code="artefact-changed",
                path=str(file),
            )


def _missing_table(name: str, table: str, folder: Path) -> UserError:
    return UserError(
        f"run {name} has no {table} in {folder}; train and evaluate it first",
        code="missing-table", run=name, table=table,
    )  # fmt: skip


def _read_graded(files: Sequence[Path]) -> tuple[pd.DataFrame, dict[tuple[int, str], Path]]:
    """The graded samples of a run; if they are many, without their texts, but with the tables to read those from."""
    columns = ["run", *SAMPLE_COLUMNS]
    without = [column for column in columns if column not in TEXTS]
    parts = {path: valid_text(tables.read(path, tables.GRADED, without)) for path in files}
    texts = {(part["step"][0].as_py(), part["benchmark"][0].as_py()): path for path, part in parts.items() if len(part)}
    if sum(tables.size(path, "completion") for path in files) <= MAX_IN_MEMORY:
        texts = {}
        parts = {path: valid_text(tables.read(path, tables.GRADED, columns)) for path in files}
    return pa.concat_tables(parts.values()).to_pandas(), texts


def _imported_log(folder: RunFolder, name: str) -> RunResults:
    """A training log that was made elsewhere, without samples of checkpoints."""
    run = _read_log_alone(folder, name)
    if others := sorted({str(other) for other in run.log["run"].unique()} - {name}):
        raise UserError(
            f"{folder.training_log} should name run {name}, but names {_short_list(others)}; import it as {name}",
            code="other-run", run=name, names=others,
        )  # fmt: skip
    return run


def _read_log_alone(folder: RunFolder, name: str) -> RunResults:
    log, not_finite = _read_log(folder.training_log)
    scores, graded = tables.SCORE.empty_table().to_pandas(), tables.GRADED.empty_table().select(SAMPLE_COLUMNS)
    records, rollouts = _read_provenance(folder.path), _read_rollouts(folder.path)
    return RunResults(name, log, not_finite, scores, graded.to_pandas(), records, rollouts)


def _is_untrained(name: str, scores: pd.DataFrame) -> bool:
    """Whether there is no training log: the samples were made elsewhere, or are of a model that was evaluated alone."""
    return name.startswith(MODELS) or bool(scores["protocol"].str.startswith(IMPORTED).all())


def load_results(results: Path, name: str, benchmarks: Sequence[str] = ()) -> RunResults:
    """Read one run and check that nothing is missing.

    Args:
        results: folder of one scale, such as results/demo.
        name: of the run, its folder below results/runs. An imported training log needs no samples; a training that was
            ended at a sign of collapse has none.
        benchmarks: those that every checkpoint must have. By default, those that any checkpoint has.

    Raises:
        UserError: there is no such run, no base model, or something is missing in the grid of checkpoints, benchmarks,
            problems and repeats. The message names it.
    """
    folder = ResultsFolder(results).run(name)
    if not folder.scores.is_file() and "imported" in provenance.read(folder.training_log):
        return _imported_log(folder, name)
    if ended_training.reason(folder.scores):
        return _read_log_alone(folder, name)
    _check_run_exists(results / "runs", folder, name)
    stored = _read_tables(folder, name)
    steps = set(stored.scores["step"]) | {
        step for path in (folder.graded, folder.path / "checkpoints") for step in step_folders(path)
    }
    wanted = set(benchmarks) or set(stored.scores["benchmark"]) | set(stored.graded["benchmark"].unique())
    _check_readable(name, *sorted(wanted))
    if missing := _missing_parts(name, stored, steps, wanted):
        raise _incomplete_error(name, missing, folder)
    run = _run_results(results, name, stored, wanted)
    if missing := list(_incomplete_cells(run)):
        raise _incomplete_error(name, missing, folder)
    return run


def _check_run_exists(runs: Path, folder: RunFolder, name: str) -> None:
    """Raise UserError if nothing of a run is stored; the message names the runs that are."""
    if folder.scores.is_file():
        return
    stored = [*runs.rglob("scores.parquet"), *runs.glob(f"*/*/{folder.training_log.name}")]  # the latter imported
    known = sorted({str(path.parent.relative_to(runs)) for path in stored})
    inside = [run for run in known if run.startswith(f"{name}/")]
    if inside or not folder.path.is_dir():
        raise UserError(
            f"there is no run {name} under {runs}; there are: {', '.join(inside or known) or 'none'}",
            code="unknown-name", name=name, known=inside or known,
        )  # fmt: skip


def _check_readable(*names: object) -> None:
    for name in map(str, names):
        if name != visible(name):
            raise UserError(
                f"names of runs and benchmarks should be readable, but {visible(name)} is not; rename it",
                code="unreadable-name",
            )


def _missing_parts(name: str, stored: _StoredTables, steps: set[int], benchmarks: set[str]) -> list[str]:
    """What is missing of a run by its tables alone."""
    untrained = _is_untrained(name, stored.scores)
    missing = [] if BASE in steps or untrained else ["step 0, the base model, was not evaluated"]
    if stored.scores.duplicated(["step", "benchmark"]).any():
        missing.append("scores.parquet scores a checkpoint twice on the same benchmark")
    if stored.log.empty and not untrained:
        missing.append("training_log.parquet has no rows")
    return [*missing, *_missing_cells(stored.scores, stored.graded, steps, benchmarks)]


def _incomplete_error(name: str, missing: Sequence[str], folder: RunFolder) -> UserError:
    return UserError(
        f"run {name} is incomplete and cannot be reported: {_short_list(missing)}; delete {folder.graded} to grade "
        f"it again, and delete checkpoints that the run file no longer names from {folder.path / 'checkpoints'}",
        code="incomplete-run", run=name, missing=len(missing),
    )  # fmt: skip


def _run_results(results: Path, name: str, stored: _StoredTables, benchmarks: set[str]) -> RunResults:
    folder, graded = ResultsFolder(results).run(name), stored.graded
    if not (kept := graded["benchmark"].isin(benchmarks)).all():
        graded = graded[kept].reset_index(drop=True)
    probes = ResultsFolder(results).contamination(name)
    run = RunResults(
        name,
        stored.log,
        stored.not_finite,
        stored.scores[stored.scores["benchmark"].isin(benchmarks)].reset_index(drop=True),
        graded,
        _read_provenance(folder.path),
        _read_rollouts(folder.path),
        other_graders={
            grader: valid_text(tables.read(other.scores, tables.SCORE)).to_pandas()
            for grader, other in folder.other_graders.items()
        },
        contamination=pd.read_csv(probes) if probes.is_file() else pd.DataFrame(),
        texts=stored.texts,
    )
    run.problem_rows.update(_problems_to_judge_again(ResultsFolder(results).benchmarks, run))
    return run
