"""Why did this number change? Two results of the same kind, compared: what differs in what made them, and in samples.

    python -m analysis.provenance_diff results/demo/runs/openr1/run/seed-0 other/demo/runs/openr1/run/seed-0
    python -m analysis.provenance_diff FIRST SECOND --step 40 --benchmark math500

Prints each score that both have with its difference, how much of it is due to the completions and how much to the
grading of equal ones, and what the provenance records say differently: code, versions, prompts and decoding, grader,
data.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.report.checkpoint_comparison import Interval
from analysis.report.provenance_summary import flat
from analysis.results import Run, load_run
from analysis.table_export import percent, points
from analysis.text_safety import visible
from contracts.errors import UserError, run_command
from contracts.steps import folder as step_folder
from eval import statistics

# What came out is no reason, and the scores' record repeats those of the graded samples.
IGNORED = ("made_at", "scored", "verdicts.", "finish_reasons.", "samples_sha256", "settings_sha256")
SHORT = 90  # characters of a value
# The first of these words that is in a setting's name (or is its stage and name) says what kind of difference it is.
TOPICS = (
    ("model", ("model_sha256", "checkpoints: sha256")),
    ("versions", ("packages", "python", "environment", "devices")),
    ("code", ("git_",)),
    ("grader", ("grader", "extraction", "verdict", "graded")),
    ("data", ("sha256", "problems", "task", "imported", "dataset")),
    ("prompts and decoding", ("prompt", "template", "temperature", "top_p", "max_tokens", "decoding", "protocol")),
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One score in two results; counts are of completions of the same problem and repeat."""

    step: int
    benchmark: str
    first: float
    second: float
    difference: Interval | None  # None where the problems are not the same
    shared: int
    only_first: int
    only_second: int
    other_prompt: int
    other_gold: int
    other_completion: int
    regraded: int  # equal completions with another verdict
    gained: int  # of these, right only in the second
    lost: int
    gained_by_completion: int
    lost_by_completion: int


def load(folder: Path) -> Run:
    """The run in a folder results/<scale>/runs/<name>."""
    parts = folder.resolve().parts
    if "runs" not in parts:
        raise UserError(f"{folder} should be the folder of a run, results/<scale>/runs/<recipe>/<run>/seed-<n>")
    place = len(parts) - 1 - parts[::-1].index("runs")
    return load_run(Path(*parts[:place]), "/".join(parts[place + 1 :]))


def _differs(first: pd.Series, second: pd.Series) -> Any:
    """Where two columns differ; two missing values are equal."""
    one, two = first.astype(object), second.astype(object)
    return ((one != two) & ~(one.isna() & two.isna())).to_numpy(dtype=bool)


def compare_cell(first: Run, second: Run, step: int, benchmark: str) -> Cell:
    """Samples of one checkpoint on one benchmark, side by side."""
    keys = ["problem_id", "repeat"]
    left, right = (run.samples(step, benchmark).astype({"problem_id": object}) for run in (first, second))
    both = left.merge(right, on=keys, how="outer", suffixes=("_1", "_2"), indicator=True)
    shared = both[both["_merge"] == "both"]
    was, now = (shared[f"verdict_{i}"].eq("correct").to_numpy(dtype=bool) for i in (1, 2))
    changed = _differs(shared["completion_1"], shared["completion_2"])
    same_problems = first.problems(benchmark) == second.problems(benchmark)
    pair = first.correct(step, benchmark), second.correct(step, benchmark)
    return Cell(
        step=step,
        benchmark=benchmark,
        first=float(pair[0].mean()),
        second=float(pair[1].mean()),
        difference=Interval(*statistics.paired_difference(*pair)) if same_problems else None,
        shared=len(shared),
        only_first=int((both["_merge"] == "left_only").sum()),
        only_second=int((both["_merge"] == "right_only").sum()),
        other_prompt=int(_differs(shared["prompt_1"], shared["prompt_2"]).sum()),
        other_gold=int(_differs(shared["gold_1"], shared["gold_2"]).sum()),
        other_completion=int(changed.sum()),
        regraded=int((_differs(shared["verdict_1"], shared["verdict_2"]) & ~changed).sum()),
        gained=int((now & ~was & ~changed).sum()),
        lost=int((was & ~now & ~changed).sum()),
        gained_by_completion=int((now & ~was & changed).sum()),
        lost_by_completion=int((was & ~now & changed).sum()),
    )


def _topic(stage: str, name: str) -> str:
    what = f"{stage}: {name}"
    return next((topic for topic, words in TOPICS if any(word in name or word == what for word in words)), "settings")


def _changed(one: str, two: str) -> str:
    """Two values in one line; of lists only the items that the other has not, or has less often."""
    items = [Counter(value.split(", ")) for value in (one, two)]
    if items[0] == items[1]:
        return "the same in another order"
    if all(own.total() > 1 for own in items):
        one, two = (", ".join((own - other).elements()) for own, other in (items, items[::-1]))
    shown = [" ".join(visible(value).split()) or "nothing" for value in (one, two)]
    short = [f"{text[: SHORT // 2]} … {text[-SHORT // 2 :]}" if len(text) > SHORT else text for text in shown]
    return " → ".join(short)


def _about(place: str, steps: set[int], benchmarks: set[str]) -> bool:
    """Whether a record has to do with these steps and benchmarks; those of the whole run always have."""
    *folders, file = place.split("/")
    step = next((folder for folder in folders if folder.startswith(step_folder(""))), None)
    if step is None:
        return True
    of_them = file == "provenance.json" or any(file.startswith(f"{name}.") for name in benchmarks)
    return of_them and step in {step_folder(number) for number in steps}


def provenance_differences(first: Run, second: Run, steps: set[int], benchmarks: set[str]) -> dict[str, list[str]]:
    """What the records of some steps and benchmarks say differently in two runs, by topic.

    Records are matched by their place in the folder. The runs' own names do not count, nor does what came out
    (verdicts, finish reasons).
    """
    found: dict[str, dict[str, int]] = {}
    for place in sorted(set(first.provenance) | set(second.provenance)):
        if not _about(place, steps, benchmarks):
            continue
        stage = place.split("/")[0].split(".")[0]
        if place not in first.provenance or place not in second.provenance:
            which = "first" if place in first.provenance else "second"
            key = f"{stage}: a record of only the {which} result"
            found.setdefault("records", {})[key] = found.setdefault("records", {}).get(key, 0) + 1
            continue
        sides = [dict(flat(run.provenance[place])) for run in (first, second)]
        for name in sorted(set(sides[0]) | set(sides[1])):
            one, two = (
                side.get(name, "not recorded").replace(run.name, "<run>")
                for side, run in zip(sides, (first, second), strict=True)
            )
            if one != two and not name.startswith(IGNORED):
                text = f"{stage}: {name}: {_changed(one, two)}"
                own = found.setdefault(_topic(stage, name), {})
                own[text] = own.get(text, 0) + 1
    return {
        topic: [text + (f" ({count} records)" if count > 1 else "") for text, count in texts.items()]
        for topic, texts in found.items()
    }


def explain(cell: Cell) -> list[str]:
    """What is behind the difference of one score, in sentences of numbers."""
    gap = f"{points(cell.second - cell.first)} points"
    if cell.difference:
        told = {"rose": "beyond noise", "fell": "beyond noise", "cannot tell": "within noise"}[cell.difference.change]
        gap += f", 95 % interval {points(cell.difference.low)} to {points(cell.difference.high)}: {told}"
    lines = [f"step {cell.step}, {cell.benchmark}: {percent(cell.first)} % → {percent(cell.second)} % ({gap})"]
    if cell.only_first or cell.only_second:
        lines.append(
            f"  {cell.only_first} samples are only in the first result and {cell.only_second} only in the second"
        )
    for count, what in (
        (cell.other_prompt, "were asked with another prompt"),
        (cell.other_gold, "have another gold answer"),
        (cell.other_completion, "have another completion"),
        (cell.regraded, "have the same completion and another verdict"),
    ):
        if count:
            lines.append(f"  {count} of {cell.shared} samples {what}")
    if any((cell.gained, cell.lost, cell.gained_by_completion, cell.lost_by_completion)):
        lines.append(
            f"  by grading alone: {cell.gained} became right, {cell.lost} became wrong; by other completions: "
            f"{cell.gained_by_completion} became right, {cell.lost_by_completion} became wrong"
        )
    if len(lines) == 1:
        lines.append("  the same samples and verdicts")
    return lines


def why(first: Run, second: Run, step: int | None = None, benchmark: str | None = None) -> str:
    """The whole comparison as text; raises UserError where the two have no score in common."""
    cells = [
        compare_cell(first, second, s, name)
        for name in first.benchmarks
        for s in first.steps
        if name in second.benchmarks and s in second.steps and benchmark in (None, name) and step in (None, s)
    ]
    if not cells:
        raise UserError(
            f"{first.name} and {second.name} should have a score in common, but there is none"
            + (f" at step {step}" if step is not None else "")
            + (f" on {benchmark}" if benchmark else "")
        )
    lines = [f"first:  {first.name}", f"second: {second.name}", "", "Scores"]
    for cell in sorted(cells, key=lambda cell: -abs(cell.second - cell.first)):
        lines += explain(cell)
    compared = {cell.step for cell in cells}, {cell.benchmark for cell in cells}
    differences = provenance_differences(first, second, *compared)
    lines += ["", "What made them differs in"] if differences else ["", "The records of what made them say the same."]
    for topic, texts in differences.items():
        lines += [f"{topic}:", *(f"  {text}" for text in texts)]
    largest = np.max([abs(cell.second - cell.first) for cell in cells])
    if largest > 0 and not differences:
        lines.append("Nothing recorded explains the change: sampling without a fixed seed, or an unrecorded setting.")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path, help="folder of a run, results/<scale>/runs/<recipe>/<run>/seed-<n>")
    parser.add_argument("second", type=Path, help="folder of the run to compare it with")
    parser.add_argument("--step", type=int, help="only this checkpoint")
    parser.add_argument("--benchmark", help="only this benchmark")
    arguments = parser.parse_args()
    print(why(load(arguments.first), load(arguments.second), arguments.step, arguments.benchmark), end="")


if __name__ == "__main__":
    run_command(main)
