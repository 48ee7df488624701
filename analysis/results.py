"""The stored results of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from analysis import comparability, hash_order
from analysis.comparability import Result
from analysis.reference import in_order
from contracts import paths, provenance, tables
from eval.statistics import Correct, clusters
from system.errors import UserError
from tasks.problems import Problem

SAMPLE_COLUMNS = [
    "step", "benchmark", "problem_id", "repeat", "prompt", "completion", "finish_reason", "completion_tokens", "gold",
    "answer", "verdict", "grader", "protocol", "cluster",
]  # fmt: skip
TEXTS = ("prompt", "completion")  # the long ones of them
SAMPLE_FACTS = ["protocol", "n_problems", "k_repeats", "completion_tokens_mean", "completion_tokens_max"]  # of a score
BASE = 0  # the step of the model before training


@dataclass(frozen=True)
class RunResults:
    """The stored results of one run: everything that a report says about it comes from here.

    Attributes:
        name: `<recipe>/<run>/seed-<n>`.
        log: one row per training step.
        not_finite: per column of the log, the steps with NaN or an infinity. (A null means: not reported.)
        scores: one row per checkpoint and benchmark.
        graded: one row per completion, with the columns SAMPLE_COLUMNS; without those in TEXTS if there are `texts`.
        texts: per checkpoint and benchmark, the table that TEXTS are read from when they are asked for; empty if all of
            them fit into memory.
        provenance: per path of a record below the run's folder, its contents.
        rollouts: some of the completions of each training step.
        problem_rows: the problems of benchmarks that a report judges again or draws, if they are stored.
        other_graders: scores of the same samples by other graders, where `snakemake grade` made them.
        contamination: what the base model completes of its benchmarks' questions, if `snakemake contamination` asked.
        title: what a page calls the run (analysis.pages.run_titles), if not by its name.
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
    def display_name(self) -> str:
        """What a page calls the run."""
        return self.title or self.name

    @property
    def quantised(self) -> str:
        """How the weights came quantised, such as Q4_1; empty if they did not."""
        return next(filter(None, map(provenance.quantisation, self.provenance.values())), "")

    @property
    def steps(self) -> list[int]:
        """Evaluated checkpoints in order, the base model (0) first."""
        return sorted(int(step) for step in self.scores["step"].unique())

    @property
    def trained(self) -> bool:
        """Whether these are checkpoints of a training run. If not, they are imported generations, or a model's."""
        return not self.log.empty

    @property
    def log_record(self) -> dict[str, Any]:
        """The provenance of the training log; empty if there is none."""
        return self.provenance.get(str(paths.record_name(paths.RunFolder(Path()).training_log)), {})

    @property
    def is_model(self) -> bool:
        """Whether these are samples of one model that was evaluated here, without a training."""
        return self.name.startswith(paths.MODELS)

    @property
    def evaluated(self) -> bool:
        """Whether any checkpoint has samples. If not, this is a training log that was imported alone."""
        return not self.scores.empty

    def label(self, step: int) -> str:
        """The name of a checkpoint for readers."""
        if step == BASE:
            return "base model" if self.trained else "the model" if self.is_model else "as imported"
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
        accuracies = [float(own["avg_at_k"]), *same]
        return (min(accuracies), max(accuracies)) if same else None

    @property
    def cells(self) -> list[tuple[int, str]]:
        """Checkpoints and benchmarks with samples, in order."""
        return list(self._sample_rows)

    def samples(self, step: int, benchmark: str, chosen: npt.ArrayLike | None = None) -> pd.DataFrame:
        """The graded completions of one checkpoint on one benchmark, with their texts.

        Args:
            step: the checkpoint.
            benchmark: its name.
            chosen: a boolean for each row of `rows`: which of them are wanted; by default all.
        """
        rows = self.rows(step, benchmark)
        wanted = np.ones(len(rows), bool) if chosen is None else np.asarray(chosen, bool)
        if "completion" in rows:
            return rows if chosen is None else rows[wanted]
        return rows[wanted].assign(
            **{name: self.text(step, benchmark, name).filter(pa.array(wanted)).to_pandas().array for name in TEXTS}
        )

    def text(self, step: int, benchmark: str, column: str = "completion") -> pa.ChunkedArray:
        """One of the columns TEXTS of `samples` alone."""
        rows = self.rows(step, benchmark)
        if column in rows:
            return pa.chunked_array([as_arrow(rows[column])])
        return _read_text_column(self.texts[step, benchmark], column, len(rows))

    def rows(self, step: int, benchmark: str) -> pd.DataFrame:
        """The rows of `samples`, without the texts if those would have to be read from files."""
        positions = self._sample_rows[step, benchmark]
        if positions[-1] - positions[0] + 1 == len(positions):  # as read from files, so that no text is copied
            positions = slice(positions[0], positions[-1] + 1)
        rows: pd.DataFrame = self.graded.iloc[positions]
        return rows

    def graded_record(self, step: int, benchmark: str) -> dict[str, Any]:
        """The provenance of one table of verdicts; empty if there is none."""
        return self.provenance.get(str(paths.record_name(paths.table(Path("graded"), step, benchmark))), {})

    def weights(self, step: int, benchmark: str) -> str | None:
        """The hash of the model folder that was sampled, if it is recorded."""
        return provenance.sampled_weights(self.graded_record(step, benchmark))

    def settings_text(self, step: int, benchmark: str) -> str:
        """How a score was asked for, for readers: `protocol demo, prompt boxed`."""
        protocol = (self.graded_record(step, benchmark).get("samples") or {}).get("protocol")
        prompt = protocol.get("prompt") if isinstance(protocol, dict) else None
        return f"protocol {self.score(step, benchmark)['protocol']}" + (f", prompt {prompt}" if prompt else "")

    def subset(self, benchmark: str) -> str:
        """Which part of a benchmark was asked, such as `first 50 of 1319`; empty if all of it was."""
        part = self.score(self.steps[0], benchmark)["subset"]
        return "" if pd.isna(part) else str(part)

    def result(self, step: int, benchmark: str) -> Result:
        """What is compared of one checkpoint and benchmark: its samples, and how they were made."""
        graded, sampled = (
            self.provenance.get(str(paths.record_name(paths.table(Path(folder), step, benchmark))), {})
            for folder in ("graded", "samples")
        )
        rows = self.rows(step, benchmark)
        if "prompt" not in rows:
            rows = rows.assign(prompt=self.text(step, benchmark, "prompt").to_pandas().array)
        return Result(rows, comparability.settings(graded, sampled))

    def problems(self, benchmark: str) -> list[str]:
        """The problems of a benchmark, in the row order of `correct`."""
        return self._correct[self.steps[0], benchmark][0]

    def clusters(self, benchmark: str) -> clusters.Codes | None:
        """Of each of `problems`, the number of its cluster; None if none share one."""
        return clusters.of_rows(self.rows(self.steps[0], benchmark))

    def halves(self, benchmark: str) -> npt.NDArray[np.int64]:
        """Which half each of `problems` is in (hash_order.halves)."""
        return hash_order.halves(
            self.rows(self.steps[0], benchmark).drop_duplicates("problem_id").sort_values("problem_id")
        )

    def correct(self, step: int, benchmark: str) -> Correct:
        """Whether each completion is correct, with shape (problems, repeats). Ungradable ones are not correct."""
        return self._correct[step, benchmark][1]

    def truncated(self, step: int, benchmark: str) -> Correct:
        """Whether each completion's verdict is `truncated`, with shape (problems, repeats)."""
        return self._correct[step, benchmark][2]

    @cached_property
    def _correct(self) -> dict[tuple[int, str], tuple[list[str], Correct, Correct]]:
        by_cell = {}
        for cell in self._sample_rows:
            rows = self.rows(*cell)
            problem, names = pd.factorize(rows["problem_id"], sort=True)
            order = np.lexsort((rows["repeat"], problem))
            right, cut = (
                rows["verdict"].eq(verdict).to_numpy(dtype=bool)[order].reshape(len(names), -1)
                for verdict in ("correct", "truncated")
            )
            by_cell[int(cell[0]), str(cell[1])] = (list(map(str, names)), right, cut)
        return by_cell

    @cached_property
    def last_facts(self) -> dict[str, int]:
        """Per benchmark, a number that other verdicts or lengths of the last checkpoint's samples change."""
        facts = ["problem_id", "repeat", "verdict", "completion_tokens"]
        return {
            name: int(pd.util.hash_pandas_object(self.rows(self.last, name)[facts], index=False).sum())
            for step, name in self.cells
            if step == self.last
        }

    @cached_property
    def _score_rows(self) -> dict[Any, Any]:
        return self.scores.groupby(["step", "benchmark"]).indices

    @cached_property
    def _sample_rows(self) -> dict[Any, Any]:
        return self.graded.groupby(["step", "benchmark"]).indices


def _same_samples(first: pd.Series, second: pd.Series) -> bool:
    """Whether two rows of scores are of the same samples, as far as scores tell: not of those before a new sampling."""
    return first[SAMPLE_FACTS].astype(str).equals(second[SAMPLE_FACTS].astype(str))


def checkpoint_labels(runs: Sequence[RunResults], rows: pd.DataFrame) -> list[str]:
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


def as_arrow(texts: pd.Series) -> pa.Array:
    """A column of texts for Arrow's functions."""
    return pa.array(texts, pa.large_string(), from_pandas=True)


def _read_text_column(path: Path, column: str, count: int) -> pa.ChunkedArray:
    """A column of a table from which so many rows were read before."""
    texts = valid_text(tables.read(path, tables.GRADED, [column]))[column]
    if len(texts) != count:
        raise UserError(
            f"{path} should have {count:,} samples, as when they were first read, but has {len(texts):,}: it was "
            "made again meanwhile; make the report again",
            code="samples-changed", path=str(path),
        )  # fmt: skip
    return texts


def check_one_measurement(run: RunResults) -> None:
    """Raise UserError if checkpoints of a run, whose differences a report shows, were measured in different ways."""
    for benchmark in run.benchmarks:
        first = run.result(run.steps[0], benchmark)
        for step in run.steps[1:]:
            if reasons := comparability.differences(first, run.result(step, benchmark)):
                raise UserError(
                    f"run {run.name} cannot be reported: step {step} on {benchmark} was measured in another way than "
                    f"step {run.steps[0]}: {'; '.join(reasons)}; delete the run's samples and graded folders to make "
                    "them again",
                    code="not-comparable", run=run.name, benchmark=benchmark, step=step,
                )  # fmt: skip
