"""The main results in sentences made from the numbers: of a checkpoint, a recipe, and the whole report.

A sentence about a recipe needs several training seeds. Of one seed, only its checkpoint is spoken of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pandas as pd

from analysis.measures.diagnostics import NOT_REPORTED, Diagnostic
from analysis.pages.table_texts import percent, points
from analysis.reference import in_order
from analysis.report.report_data import RunFacts
from analysis.results import BASE, RunResults
from analysis.statistics import training_seeds
from analysis.statistics.accuracy_rows import AVERAGE, BASE_MARKS, CheckpointRow, overall_column
from analysis.statistics.training_seeds import Recipe
from contracts import seeds
from contracts.run_file import SCALES

MAX_BENCHMARKS = 6  # named; if there are more, only their number is given
MAX_RUNS_NAMED = 4  # in a command
INTERVAL = "95\N{NO-BREAK SPACE}% interval"


@dataclass(frozen=True)
class MainResult:
    """`change` is rose, fell, cannot tell, or nothing to compare. `details` has one clause per benchmark."""

    run: str
    change: str
    sentence: str
    details: list[str]


def _size(value: float) -> str:
    return f"{abs(100 * value):.1f}"


def _share(value: float) -> str:
    return f"{percent(value)}\N{NO-BREAK SPACE}%"


def _at_checkpoint(row: CheckpointRow) -> str:
    return f"at {row.label}" if row.step != BASE else f"for the {row.label}"


def main_result(run: RunResults, rows: list[CheckpointRow]) -> MainResult:
    """Whether the last checkpoint's held-out accuracy is another than the base model's, by how much and how certain."""
    last = rows[-1]
    name = overall_column(last.cells)
    over = f"the mean of {len(run.benchmarks)} benchmarks" if name == AVERAGE else name
    before, cell = rows[0].cells[name].accuracy, last.cells[name]
    gap = cell.difference
    if gap is None:
        untrained = "Evaluated without a training" if run.is_model else "These generations are imported"
        what = f"Only the {last.label} was evaluated" if run.trained else untrained
        interval = f"{INTERVAL} {percent(before.low)} to {percent(before.high)}"
        return MainResult(
            run.display_name, "nothing to compare", f"{what}: {_share(before.value)} on {over} ({interval}).", []
        )
    start = f"from {_share(before.value)} {_at_checkpoint(rows[0])}"
    path = f"{start} to {_share(cell.accuracy.value)} {_at_checkpoint(last)}, on {over}"
    if gap.change in ("rose", "fell"):
        near, far = sorted((abs(gap.low), abs(gap.high)))
        size = f"{_size(gap.value)} points ({INTERVAL} {_size(near)} to {_size(far)})"
        sentence = f"Held-out accuracy of this checkpoint {gap.change} by {size}, {path}."
    else:
        sentence = (
            f"Whether held-out accuracy of this checkpoint changed cannot be told: the difference is "
            f"{points(gap.value)} points ({INTERVAL} {points(gap.low)} to {points(gap.high)}), {path}."
        )
    details = []
    for benchmark in run.benchmarks if name == AVERAGE else []:
        own = last.cells[benchmark].difference
        assert own is not None
        mark = BASE_MARKS[own.change]
        details.append(f"{mark} {benchmark} {points(own.value)} [{points(own.low)}, {points(own.high)}]")
    return MainResult(run.display_name, gap.change, sentence, details)


def recipe_result(recipe: Recipe) -> MainResult:
    """Whether held-out accuracy changed over several training seeds, with an interval for new seeds and problems."""
    names = recipe.runs[0].benchmarks
    over = f"the mean of {len(names)} benchmarks" if len(names) > 1 else names[0]
    before, last = training_seeds.before_and_last(recipe)
    gap, each = training_seeds.gain(recipe, None, names), training_seeds.accuracy_of_each_seed(recipe, None, names)
    interval = f"{INTERVAL} for new seeds and new problems"
    start = f"Over {len(each)} training seeds, "
    if gap.change in ("rose", "fell"):
        near, far = sorted((abs(gap.low), abs(gap.high)))
        start += (
            f"held-out accuracy {gap.change} by {_size(gap.value)} points ({interval} {_size(near)} to {_size(far)})"
        )
    else:
        start += (
            f"whether held-out accuracy changed cannot be told: the difference is {points(gap.value)} points "
            f"({interval} {points(gap.low)} to {points(gap.high)})"
        )
    sentence = (
        f"{start}, from {_share(before.value)} for the base model to {_share(last.value)} at the last checkpoint, on "
        f"{over}. The seeds end at {percent(float(each.min()))} to {_share(float(each.max()))}, with a standard "
        f"deviation of {100 * float(each.std(ddof=1)):.1f} points."
    )
    return MainResult(recipe.display_name, gap.change, sentence, [])


def _listed(names: Iterable[str], parts: Mapping[str, str] = MappingProxyType({})) -> str:
    """Distinct names as `a, b and c`: benchmarks in the published order, with the part of one, others by name."""
    ordered = [name + (f" ({part})" if (part := parts.get(name)) else "") for name in in_order(set(names))]
    return f"{', '.join(ordered[:-1])} and {ordered[-1]}" if len(ordered) > 1 else ordered[0]


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _in(what: str, number: int) -> str:
    """A further part of a sentence; none of zero."""
    return f", {what} {number}" if number else ""


def _what(runs: Sequence[RunResults], facts: dict[str, RunFacts], scale: str) -> str:
    """What was run: recipes and frameworks of the trained runs, and the number of imported ones."""
    trained, parts = [run for run in runs if run.trained], []
    if trained:
        frameworks = [facts[run.name].framework for run in trained if facts[run.name].framework != "–"]
        through = f" through {_listed(frameworks)}" if frameworks else ""
        recipes = _listed(run.name.split("/")[0] for run in trained)
        parts.append(f"{_count(len(trained), 'run')} of {recipes}{through} at {scale} scale")
    if models := sum(run.is_model for run in runs):
        parts.append(f"{_count(models, 'model')} without a training")
    if imported := len(runs) - len(trained) - models:
        parts.append(f"{_count(imported, 'run')} of imported generations")
    problems = {name: len(run.problems(name)) for run in runs for name in run.benchmarks}
    limited = {name: run.subset(name) for run in runs for name in run.benchmarks}
    on = _listed(problems, limited) if len(problems) <= MAX_BENCHMARKS else f"{len(problems)} benchmarks"
    return (
        f"{' and '.join(parts)}: {_count(sum(len(run.steps) for run in runs), 'checkpoint')} with "
        f"{_count(sum(len(run.graded) for run in runs), 'graded completion')} on "
        f"{_count(sum(problems.values()), 'problem')} of {on}."
    )


def _of_recipes(recipes: Sequence[Recipe]) -> str:
    """What several seeds say of the recipes, or that a single one says nothing of its recipe."""
    repeated = [recipe for recipe in recipes if recipe.has_several_seeds]
    if not repeated:
        each = "The run" if len(recipes) == 1 else "Each run"
        return f"{each} has one training seed, so this is about its checkpoint, not about its recipe."
    changes = [training_seeds.gain(recipe, None, recipe.runs[0].benchmarks).change for recipe in repeated]
    return (
        f"Over their seeds it rose beyond noise in {changes.count('rose')} of {_count(len(repeated), 'recipe')} with "
        f"several seeds{_in('and fell in', changes.count('fell'))}"
        + ("; of the others, only checkpoints are spoken of." if len(repeated) < len(recipes) else ".")
    )


def _change(recipes: Sequence[Recipe], rows: dict[str, list[CheckpointRow]]) -> str:
    """In how many runs accuracy changed, and the largest change, or the highest accuracy if nothing can be compared."""
    titles = {run.name: run.display_name for recipe in recipes for run in recipe.runs}
    last = {name: own[-1].cells[overall_column(own[-1].cells)] for name, own in rows.items()}
    gaps = {name: cell.difference for name, cell in last.items() if cell.difference}
    if gaps:
        counts = {change: sum(gap.change == change for gap in gaps.values()) for change in BASE_MARKS}
        name, gap = max(gaps.items(), key=lambda item: abs(item[1].value))
        with_gaps = [recipe for recipe in recipes if recipe.runs[0].name in gaps]
        size = f"{points(gap.value)} points ({INTERVAL} {points(gap.low)} to {points(gap.high)})"
        if len(rows) == 1:
            certain = "within noise" if gap.change == "cannot tell" else "beyond noise"
            return (
                f"From base model to last checkpoint, held-out accuracy changed by {size}, which is {certain}. "
                f"{_of_recipes(with_gaps)}"
            )
        return (
            f"From base model to last checkpoint, held-out accuracy rose beyond noise in {counts['rose']} of "
            f"{_count(len(gaps), 'run')}{_in('fell in', counts['fell'])}"
            f"{_in('and is within noise in', counts['cannot tell'])}; the largest change is {size} in {titles[name]}. "
            f"{_of_recipes(with_gaps)}"
        )
    name, cell = max(last.items(), key=lambda item: item[1].accuracy.value)
    highest, lacking = cell.accuracy, "there is no" if len(last) == 1 else "no run has a"
    return (
        f"The highest accuracy is {_share(highest.value)} "
        f"({INTERVAL} {percent(highest.low)} to {percent(highest.high)}) in {titles[name]}, "
        f"and {lacking} second checkpoint to compare it with."
    )


def _collapse(runs: Sequence[RunResults], warnings: Sequence[Diagnostic]) -> str:
    collapsed: dict[str, str] = {}
    for warning in warnings:
        if warning.topic == "collapse":
            collapsed.setdefault(warning.run, warning.text)
    if collapsed:
        name, text = next(iter(collapsed.items()))
        title = next((run.display_name for run in runs if run.name == name), name)  # else an imported log
        show = "shows" if len(collapsed) == 1 else "show"
        return f"{_count(len(collapsed), 'run')} {show} signs of collapse ({title}: {text})"
    if not any(run.trained for run in runs):
        return "There is no training to check"
    is_blind = any(warning.text.startswith(NOT_REPORTED) for warning in warnings)
    return "No run shows signs of collapse" + is_blind * " among those that its log can show"


def _trouble(runs: Sequence[RunResults], warnings: Sequence[Diagnostic]) -> str:
    """Whether a run collapsed, where most completions were truncated, and how many warnings there are."""
    scores = pd.concat([run.scores for run in runs]).dropna(subset="truncated_rate")
    if scores.empty:
        cut = "truncation is unknown"
    elif not (most := float(scores["truncated_rate"].max())):
        cut = "no completion is known to be truncated"
    else:
        row = scores.iloc[int(scores["truncated_rate"].to_numpy().argmax())]
        title = "".join(f"{run.display_name}, " for run in runs if run.name == row["run"] and len(runs) > 1)
        cell = f"{title}step {row['step']}, {row['benchmark']}"
        cut = f"the highest truncation of a score is {_share(most)} ({cell})"
    follow = f"{_count(len(warnings), 'warning')} {'follows' if len(warnings) == 1 else 'follow'} below"
    return f"{_collapse(runs, warnings)}, {cut}, and {follow if warnings else 'there are no warnings'}."


def summary(
    recipes: Sequence[Recipe],
    rows: dict[str, list[CheckpointRow]],
    facts: dict[str, RunFacts],
    warnings: Sequence[Diagnostic],
    scale: str,
) -> list[str]:
    """Three sentences: what was run, the results, and what to be careful about.

    Args:
        recipes: all runs of the report, by recipe.
        rows: their accuracy rows, by name.
        facts: what they are, by name.
        warnings: those of all runs.
        scale: one of contracts.run_file.SCALES.
    """
    runs = [run for recipe in recipes for run in recipe.runs]
    return [_what(runs, facts, scale), _change(recipes, rows), _trouble(runs, warnings)]


def next_step(recipes: Sequence[Recipe], scale: str) -> tuple[str, str]:
    """What to do after this page: why, and the command."""
    trained = list(dict.fromkeys(seeds.run_of(recipe.runs[0].name) for recipe in recipes if recipe.runs[0].trained))
    named = " ".join(trained[:MAX_RUNS_NAMED])
    if not trained:
        return "To compare them with other models or generations:", "crosszero compare A B"
    if not any(recipe.has_several_seeds for recipe in recipes):
        return (
            "Whether the recipe is better, and not this checkpoint alone, takes several training seeds:",
            f"crosszero reproduce {named} --seeds 0,1,2" + ("" if scale == SCALES[0] else f" --scale {scale}"),
        )
    if scale == "full":
        return "What these runs say of the claims of the source documents:", "crosszero claims"
    return "The published values need GPUs:", f"crosszero reproduce {named} --scale full --profile slurm"
