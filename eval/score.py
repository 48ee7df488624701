"""Score the graded samples of a run: `crosszero score-samples --graded DIR --output scores.parquet`.

Reads DIR/step-<n>/<benchmark>.parquet, checks that nothing is missing, and writes one row per step and benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from contracts import ended_training, paths, provenance, steps, tables
from eval import benchmark, score_table, statistics
from eval import subset as subsets
from eval.statistics import clusters
from eval.statistics.pass_and_majority import by_problem, ties_of
from system.command_line import argument_parser
from system.errors import UserError, run_command
from tasks import registry


def _first_names(names: Iterable[str], count: int | None = None) -> str:
    names = list(names)
    more = (len(names) if count is None else count) - 5
    return ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")


def _faults(
    graded: pd.DataFrame, problems: Iterable[str] | None, repeats: int | None
) -> Iterator[tuple[str, int, str]]:
    """Code, number and sentence of each way in which samples can be incomplete; the number is 0 where they are not."""
    yield "no-samples", int(graded.empty), "should hold graded samples but is empty"
    unnamed = int(graded[["problem_id", "repeat"]].isna().any(axis=1).sum())
    yield "unnamed-samples", unnamed, f"should say problem_id and repeat of every sample, but {unnamed} have none"
    requested = list(problems) if problems is not None else sorted(graded["problem_id"].unique())
    k = repeats or int(graded["repeat"].max()) + 1
    twice = int(graded.duplicated(["problem_id", "repeat"]).sum())
    yield "duplicate-samples", twice, f"should hold every problem and repeat once, but {twice} are there twice"
    others = sorted(set(graded["problem_id"]) - set(requested))
    yield (
        "other-problems",
        len(others),
        f"holds {len(others)} problems that were not requested ({_first_names(others)})",
    )
    delivered = set(zip(graded["problem_id"], graded["repeat"], strict=True))
    wanted = len(requested) * k
    known = set(requested)
    present = sum(problem in known and 0 <= repeat < k for problem, repeat in delivered)
    # One by one, because a file may state any number of repeats
    each = ((problem, repeat) for problem in requested for repeat in range(k))
    absent = (f"{problem} repeat {repeat}" for problem, repeat in each if (problem, repeat) not in delivered)
    missing = wanted - present
    size, names = f"{len(requested)} problems × {k} repeats", _first_names(islice(absent, 5), missing)
    yield "missing-samples", missing, f"should hold {size}, but {missing} are missing ({names})"
    more = len(delivered) - wanted
    yield "too-many-samples", more, f"should hold {k} repeats per problem but holds {more} samples more"
    ungraded = graded.loc[~graded["verdict"].isin(tables.VERDICTS), "problem_id"]
    names = _first_names(ungraded)
    yield "missing-verdicts", len(ungraded), f"holds {len(ungraded)} samples without a verdict ({names})"


def check_complete(
    graded: pd.DataFrame, where: str, problems: Iterable[str] | None = None, repeats: int | None = None
) -> None:
    """Check that requested = delivered = graded.

    Args:
        graded: one run, step and benchmark (GRADED).
        where: what to call it in messages.
        problems: the problem_ids that were requested; by default those of the table.
        repeats: completions requested per problem; by default as many as the highest repeat says.

    Raises:
        UserError: a sample is missing, is there twice, was not requested, or has no verdict; it names the first ones.
    """
    for code, count, sentence in _faults(graded, problems, repeats):
        if count:
            remedy = "run the generation again (it generates only what is missing), then the grading"
            if code not in ("missing-samples", "missing-verdicts"):
                remedy = f"delete it and {remedy}"
            raise UserError(f"{where} {sentence}; {remedy}", code=code, count=count)


@cache
def _spelling(name: str) -> Callable[[str], str]:
    """What makes answers on a benchmark comparable. One whose file is gone has no task to ask."""
    return registry.get(benchmark.task_of(name)).canonical_answer if name in benchmark.names() else str.strip


def spelled_answers(graded: pd.DataFrame) -> pd.Series:
    """The answers in the spelling by which votes are counted; None where there is none."""
    spelling = _spelling(str(graded["benchmark"].iloc[0]))
    spelled = [None if pd.isna(answer) else spelling(answer) for answer in graded["answer"]]
    return pd.Series(spelled, index=graded.index, dtype=object)


def multi_sample_estimates(graded: pd.DataFrame, ties: str | None = None) -> dict[str, statistics.Estimate]:
    """pass@k at powers of two up to all repeats, and maj@k, with intervals over problems.

    Args:
        graded: complete samples of one run, step and benchmark.
        ties: one of statistics.TIES; by default that of the samples' source (`pass_and_majority.ties_of`).
    """
    graded = graded.sort_values(["problem_id", "repeat"])
    values = by_problem(graded, spelled_answers(graded), ties or ties_of(graded["protocol"]))
    shared = clusters.of_rows(graded)
    return {
        measure: statistics.mean_over_problems(clusters.linearised(value, shared)) for measure, value in values.items()
    }


def score_row(graded: pd.DataFrame, ties: str | None = None, subset: str = "") -> dict[str, object]:
    """The SCORE row of one run, step and benchmark, whose samples are complete (`check_complete`).

    An ungradable completion counts as not correct, so the score is a lower bound; n_ungradable says how far it could
    rise.

    Args:
        graded: the samples (GRADED).
        ties: that of `multi_sample_estimates`.
        subset: which part of the benchmark it is, for readers; empty if it is whole.
    """
    graded = graded.sort_values(["problem_id", "repeat"])
    n = graded["problem_id"].nunique()
    k = len(graded) // n
    right = graded["verdict"].eq("correct")
    correct = right.to_numpy(dtype=bool).reshape(n, k)
    *_, passed, majority = multi_sample_estimates(graded, ties).values()
    known = graded["finish_reason"].notna()
    cut = graded["finish_reason"].eq("length")
    estimate = statistics.avg_at_k(correct, clusters=clusters.of_rows(graded))
    verdicts = graded["verdict"].value_counts()
    first = graded.iloc[0]
    return {
        **{name: first[name] for name in ("run", "step", "benchmark", "protocol")},
        "n_problems": n,
        "subset": subset or None,
        "k_repeats": k,
        "avg_at_k": estimate.value,
        "ci_low": estimate.low,
        "ci_high": estimate.high,
        "pass_at_k": passed.value,
        "maj_at_k": majority.value,
        **{"pass_low": passed.low, "pass_high": passed.high, "maj_low": majority.low, "maj_high": majority.high},
        "maj_ties": ties or ties_of(graded["protocol"]),
        "avg_at_k_completed": float(right[~cut].mean()) if known.all() and not cut.all() else None,
        "truncated_rate": float(cut.mean()) if known.all() else None,
        "completion_tokens_mean": _or_none(graded["completion_tokens"].mean()),
        "completion_tokens_max": _or_none(graded["completion_tokens"].max()),
        **{f"n_{verdict}": int(verdicts.get(verdict, 0)) for verdict in tables.VERDICTS},
    }


def _or_none(value: float) -> float | None:
    return None if pd.isna(value) else float(value)


def read_graded(path: Path) -> pd.DataFrame:
    """A table of graded samples as a data frame."""
    frame: pd.DataFrame = tables.read(path, tables.GRADED).to_pandas()
    return frame


def score_run(folder: Path, problems: Path | None = None, ties: str | None = None) -> pa.Table:
    """Scores of all steps and benchmarks of a run, ordered by benchmark and step.

    Args:
        folder: holds step-<n>/<benchmark>.parquet (GRADED).
        problems: holds <benchmark>.parquet (PROBLEM), what was requested; by default, all problems that any step has.
        ties: of maj@k, see `multi_sample_estimates`.

    Raises:
        UserError: there are no graded samples, or some are missing.
    """
    files = paths.tables(folder)
    if not files:
        raise UserError(
            f"{folder} should hold step-<n>/<benchmark>.parquet but has none; grade the run's samples first",
            code="no-samples",
            path=str(folder),
        )
    requested: dict[str, list[str]] = {}
    repeats: dict[str, int] = {}
    frames = {path: read_graded(path) for path in files}
    records = {path: provenance.read(path) for path in files}
    for path, graded in frames.items():
        name = path.stem
        if problems is not None and name not in requested:
            listed, limited = tables.read(problems / path.name, tables.PROBLEM), subsets.from_record(records[path])
            requested[name] = (limited.rows(listed) if limited else listed)["problem_id"].to_pylist()
        elif problems is None:
            requested[name] = sorted({*requested.get(name, []), *graded["problem_id"]})
        if not graded.empty:
            repeats[name] = max(repeats.get(name, 1), int(graded["repeat"].max()) + 1)
    for path, graded in frames.items():
        check_complete(graded, str(path), requested[path.stem], repeats.get(path.stem))
    rows = sorted(
        (score_row(graded, ties, subsets.label(records[path])) for path, graded in frames.items()),
        key=lambda row: (row["benchmark"], row["step"]),
    )
    return pa.Table.from_pylist(rows, schema=tables.SCORE)


def graded_record(path: Path) -> dict[str, Any]:
    """How the completions behind a score were asked for and graded, from the provenance of the graded table."""
    record, kept = (
        provenance.read(path),
        ("samples", "samples_sha256", "problems_sha256", "grader", "extraction", "subset"),
    )
    hashed = {"graded": str(path), "graded_sha256": provenance.sha256(path)}
    return {**hashed, **{key: record[key] for key in kept if key in record}}


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--graded", type=Path, required=True, help="folder with step-<n>/<benchmark>.parquet")
    parser.add_argument("--output", type=Path, required=True, help="the score table to write (Parquet)")
    parser.add_argument(
        "--problems", type=Path, help="folder with <benchmark>.parquet: the problems that were requested"
    )
    parser.add_argument(
        "--ties", choices=statistics.TIES,
        help="of answers with equally many votes in maj@k: the chance that a random one is right, or the first one "
        "(default: first for samples imported from a harness, which all do that, else chance)",
    )  # fmt: skip
    arguments = parser.parse_args()
    if why := ended_training.reason(arguments.graded):
        tables.write(tables.SCORE.empty_table(), tables.SCORE, arguments.output)
        provenance.write(arguments.output, ended=why)
        return
    scores = score_run(arguments.graded, arguments.problems, arguments.ties)
    tables.write(scores, tables.SCORE, arguments.output)
    provenance.write(arguments.output, scored=[graded_record(path) for path in paths.tables(arguments.graded)])
    print(score_table.table_text(arguments.output))
    for row in scores.to_pylist():
        if row["k_repeats"] > 1:
            print(f"step {row['step']}, {row['benchmark']}:")
            graded = read_graded(arguments.graded / steps.folder(row["step"]) / f"{row['benchmark']}.parquet")
            for measure, estimate in multi_sample_estimates(graded, arguments.ties).items():
                percent, low, high = (100 * value for value in estimate)
                print(f"    {measure:<28} {percent:5.1f} % [{low:.1f}, {high:.1f}]")


if __name__ == "__main__":
    run_command(main)
