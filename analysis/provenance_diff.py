"""Why did this number change? Compare two results: their samples, and the records of how they were made.

    crosszero why results/demo/runs/openr1/run/seed-0 other/demo/runs/openr1/run/seed-0
    crosszero why FIRST SECOND --step 40 --benchmark math500

A run here has its name as well, openr1/run/seed-0. Prints every score that both have, with the difference and how much
of it comes from other completions and how much from other verdicts on the same completions. Then prints the differences
between the provenance records: code, versions, prompts and decoding, grader, data.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis import comparability
from analysis.artefacts.describe import find_result
from analysis.load_results import load_results
from analysis.pages.table_texts import percent, points
from analysis.provenance_summary import flat
from analysis.results import RunResults
from contracts.paths import ResultsFolder
from contracts.run_file import SCALES
from contracts.steps import folder as step_folder
from eval import statistics
from eval.statistics import Estimate
from system.command_line import argument_parser
from system.errors import ROOT, UserError, run_command
from system.text_safety import visible

# Outcomes are no cause, and the record of the scores repeats those of the graded samples.
IGNORED = (
    "made_at",
    "scored",
    "verdicts.",
    "finish_reasons.",
    "samples_sha256",
    "settings_sha256",
    "file_sha256",
    "job_seconds",
)
MAX_CHARACTERS = 90  # of a value
# The topic of a setting: the first one with a word that is in the setting's name, or that is its stage and name.
TOPICS = (
    ("model", ("model_sha256", "checkpoints: sha256")),
    ("versions", ("packages", "python", "environment", "devices")),
    ("code", ("git_",)),
    ("grader", ("grader", "extraction", "verdict", "graded")),
    ("data", ("sha256", "problems", "task", "imported", "dataset")),
    ("prompts and decoding", ("prompt", "template", "temperature", "top_p", "max_tokens", "decoding", "protocol")),
)  # fmt: skip
NOISE_TEXTS = {"rose": "beyond noise", "fell": "beyond noise", "cannot tell": "within noise"}


COMPARED = {"prompt": "another prompt", "gold": "another gold answer", "completion": "another completion"}


@dataclass(frozen=True)
class ScoreDifference:
    """One score in two results. Counts are of samples of the same problem and repeat."""

    step: int
    benchmark: str
    first: float
    second: float
    difference: Estimate | None  # None if the problems differ
    shared: int
    only: tuple[int, int]  # samples of only the first, and of only the second result
    other: dict[str, int]  # what differs, in words: number of samples
    moved: dict[str, tuple[int, int]]  # by grading alone, by other completions: became correct, became wrong
    not_comparable: tuple[str, ...]  # why the two scores are not of the same measurement


def load_run_folder(folder: Path) -> RunResults:
    """The run in a folder results/<scale>/runs/<name>, or of a checkpoint below it."""
    parts = folder.resolve().parts
    if trained := [number for number, part in enumerate(parts) if part.startswith("seed-")]:
        parts = parts[: trained[-1] + 1]
    if "runs" not in parts:
        raise UserError(
            f"{folder} should be the folder of a run, results/<scale>/runs/<recipe>/<run>/seed-<n>",
            code="not-a-run", path=str(folder),
        )  # fmt: skip
    position = len(parts) - 1 - parts[::-1].index("runs")
    return load_results(Path(*parts[:position]), "/".join(parts[position + 1 :]))


def _unequal_values(first: pd.Series, second: pd.Series) -> npt.NDArray[np.bool_]:
    """Where two columns differ. Two nulls are equal."""
    one, two = first.astype(object), second.astype(object)
    return ((one != two) & ~(one.isna() & two.isna())).to_numpy(dtype=bool)


def compare_scores(first: RunResults, second: RunResults, step: int, benchmark: str) -> ScoreDifference:
    """Compare the samples of one checkpoint on one benchmark in two results.

    Args:
        first: result with this step and benchmark.
        second: the other one.
        step: training step of the checkpoint.
        benchmark: its name.
    """
    keys = ["problem_id", "repeat"]
    left, right = (run.samples(step, benchmark).astype({"problem_id": object}) for run in (first, second))
    both = left.merge(right, on=keys, how="outer", suffixes=("_1", "_2"), indicator=True)
    shared = both[both["_merge"] == "both"]
    was, now = (shared[f"verdict_{i}"].eq("correct").to_numpy(dtype=bool) for i in (1, 2))
    differs = {name: _unequal_values(shared[f"{name}_1"], shared[f"{name}_2"]) for name in (*COMPARED, "verdict")}
    changed = differs["completion"]
    other = {description: int(differs[name].sum()) for name, description in COMPARED.items()}
    other["the same completion and another verdict"] = int((differs["verdict"] & ~changed).sum())
    same_problems = first.problems(benchmark) == second.problems(benchmark)
    pair = first.correct(step, benchmark), second.correct(step, benchmark)
    return ScoreDifference(
        step=step,
        benchmark=benchmark,
        first=float(pair[0].mean()),
        second=float(pair[1].mean()),
        difference=(statistics.paired_difference(*pair, clusters=first.clusters(benchmark)) if same_problems else None),
        shared=len(shared),
        only=(int((both["_merge"] == "left_only").sum()), int((both["_merge"] == "right_only").sum())),
        other=other,
        moved={
            how: (int((now & ~was & which).sum()), int((was & ~now & which).sum()))
            for how, which in (("by grading alone", ~changed), ("by other completions", changed))
        },
        not_comparable=tuple(comparability.differences(first.result(step, benchmark), second.result(step, benchmark))),
    )


def _setting_topic(stage: str, name: str) -> str:
    what = f"{stage}: {name}"
    return next((topic for topic, parts in TOPICS if any(word in name or word == what for word in parts)), "settings")


def _change_text(one: str, two: str) -> str:
    """Two values on one line. Of two lists, only the items that the other one lacks or has less often."""
    items = [Counter(value.split(", ")) for value in (one, two)]
    if items[0] == items[1]:
        return "the same items in another order"
    if all(own.total() > 1 for own in items):
        one, two = (", ".join((own - other).elements()) for own, other in (items, items[::-1]))
    texts = [" ".join(visible(value).split()) or "nothing" for value in (one, two)]
    half = MAX_CHARACTERS // 2
    return " → ".join(f"{text[:half]} … {text[-half:]}" if len(text) > MAX_CHARACTERS else text for text in texts)


def _concerns(record_path: str, steps: Collection[int], benchmarks: Collection[str]) -> bool:
    """Whether a record concerns these steps and benchmarks. Records of the whole run always do."""
    *folders, file = record_path.split("/")
    step = next((folder for folder in folders if folder.startswith(step_folder(""))), None)
    if step is None:
        return True
    of_benchmarks = file == "provenance.json" or any(file.startswith(f"{name}.") for name in benchmarks)
    return of_benchmarks and step in {step_folder(number) for number in steps}


def _setting_differences(first: RunResults, second: RunResults, record_path: str) -> dict[str, tuple[str, str]]:
    """The settings that differ between two records at the same place, each with its two values."""
    one, two = (
        {name: value.replace(run.name, "<run>") for name, value in flat(run.provenance[record_path])}
        for run in (first, second)
    )
    scales = {run.provenance[record_path].get("scale") for run in (first, second)}
    ignored = (*IGNORED, *(f"run_file.{scale}." for scale in SCALES if scale not in scales))
    pairs = {name: (one.get(name, "not recorded"), two.get(name, "not recorded")) for name in sorted({**one, **two})}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1] and not name.startswith(ignored)}


def provenance_differences(
    first: RunResults, second: RunResults, steps: Collection[int], benchmarks: Collection[str]
) -> dict[str, list[str]]:
    """Differences between the provenance records of two results, by topic.

    Records are matched by their path in the run's folder. The names of the runs and outcomes (verdicts, finish reasons)
    are ignored.

    Args:
        first: one result.
        second: the other.
        steps: checkpoints whose records are compared, besides those of the whole run.
        benchmarks: likewise.
    """
    by_topic: dict[str, Counter[str]] = {}
    for record_path in sorted({**first.provenance, **second.provenance}):
        if not _concerns(record_path, steps, benchmarks):
            continue
        stage = record_path.split("/")[0].split(".")[0]
        if record_path not in first.provenance or record_path not in second.provenance:
            which = "first" if record_path in first.provenance else "second"
            by_topic.setdefault("records", Counter())[f"{stage}: a record of only the {which} result"] += 1
            continue
        for name, (one, two) in _setting_differences(first, second, record_path).items():
            by_topic.setdefault(_setting_topic(stage, name), Counter())[
                f"{stage}: {name}: {_change_text(one, two)}"
            ] += 1
    return {
        topic: [text + (f" ({count} records)" if count > 1 else "") for text, count in texts.items()]
        for topic, texts in by_topic.items()
    }


def explanation_lines(score: ScoreDifference) -> list[str]:
    """The difference of one score and what it consists of, as lines of text."""
    gap = f"{points(score.second - score.first)} points"
    if score.difference and not score.not_comparable:
        low, high = points(score.difference.low), points(score.difference.high)
        gap += f", 95 % interval {low} to {high}: {NOISE_TEXTS[score.difference.change]}"
    lines = [f"step {score.step}, {score.benchmark}: {percent(score.first)} % → {percent(score.second)} % ({gap})"]
    if any(score.only):
        lines.append("  {} samples are only in the first result and {} only in the second".format(*score.only))
    lines += [f"  {count} of {score.shared} samples have {what}" for what, count in score.other.items() if count]
    if any(map(any, score.moved.values())):
        moved = (f"{how}: {up} became correct, {down} became wrong" for how, (up, down) in score.moved.items())
        lines.append(f"  {'; '.join(moved)}")
    lines += [f"  not comparable: {reason}" for reason in score.not_comparable]
    if len(lines) == 1:
        lines.append("  same samples, same verdicts")
    return lines


def provenance_diff(
    first: RunResults, second: RunResults, step: int | None = None, benchmark: str | None = None
) -> str:
    """The whole comparison as text.

    Args:
        first: one result.
        second: the other.
        step: compare only this checkpoint.
        benchmark: compare only this benchmark.

    Raises:
        UserError: the two have no score in common.
    """
    scores = [
        compare_scores(first, second, s, name)
        for name in first.benchmarks
        for s in first.steps
        if name in second.benchmarks and s in second.steps and benchmark in (None, name) and step in (None, s)
    ]
    steps, benchmarks = {score.step for score in scores}, {score.benchmark for score in scores}
    if not scores:
        raise UserError(
            "the two runs should have a score in common"
            + (f" at step {step}" if step is not None else "")
            + (f" on {benchmark}" if benchmark else "")
            + "".join(
                f"{joint} {run.name} has {', '.join(run.benchmarks)} at step {', '.join(map(str, run.steps))}"
                for joint, run in ((", but", first), (" and", second))
            ),
            code="no-common-score", step=step, benchmark=benchmark,
        )  # fmt: skip
    lines = [f"first:  {first.name}", f"second: {second.name}", "", "Scores"]
    for score in sorted(scores, key=lambda score: -abs(score.second - score.first)):
        lines += explanation_lines(score)
    for which, run in (("first", first), ("second", second)):
        if step is None and (alone := [number for number in run.steps if number not in steps]):
            lines.append(f"only the {which} has step {', '.join(map(str, alone))}")
    differences = provenance_differences(first, second, steps, benchmarks)
    lines += ["", "Provenance differs in" if differences else "Their provenance records are the same."]
    for topic, texts in differences.items():
        lines += [f"{topic}:", *(f"  {text}" for text in texts)]
    if not differences and any(score.second != score.first for score in scores):
        lines.append("No record explains the change: sampling had no fixed seed, or a setting was not recorded.")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("first", help="a run, <recipe>/<run>/seed-<n>, or its folder; with /step-<n>, that checkpoint")
    parser.add_argument("second", help="the run to compare it with")
    parser.add_argument("--step", type=int, help="only this checkpoint")
    parser.add_argument("--benchmark", help="only this benchmark")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "demo", help="folder of runs that are named")
    arguments = parser.parse_args()
    folders = [find_result(name, ResultsFolder(arguments.results)) for name in (arguments.first, arguments.second)]
    named = {int(match[1]) for folder in folders if (match := re.search(r"/step-(\d+)\b", str(folder)))}
    steps = named | ({arguments.step} if arguments.step is not None else set())
    if len(steps) > 1:
        raise UserError(
            f"one step of two runs is compared here, not {' and '.join(map(str, sorted(steps)))}: is one checkpoint "
            f"better than the other? crosszero compare {arguments.first} {arguments.second}",
            code="several-steps", steps=sorted(steps),
        )  # fmt: skip
    first, second = map(load_run_folder, folders)
    print(provenance_diff(first, second, steps.pop() if steps else None, arguments.benchmark), end="")


if __name__ == "__main__":
    run_command(main)
