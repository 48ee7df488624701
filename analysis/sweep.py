"""The page of a sweep (recipes/sweeps.py) from its stored results: `snakemake sweep`.

    python -m analysis.sweep openr1/group-size --scale demo --seeds 0 1 2 --results results/demo --output FOLDER

One table and one figure of the settings, and their training by step. The best setting is chosen on half of the problems
and reported on the other half, for both halves: on the problems it was chosen on, it would look better than it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis import table_export
from analysis.gate import recipes
from analysis.gate.recipe_runs import half
from analysis.report import checkpoint_comparison, diagnostics, figure_style, page, training_seeds
from analysis.report.checkpoint_comparison import mean_of
from analysis.report.tables import interval_columns, interval_text
from analysis.report.training_seeds import Recipe
from analysis.results import RunResults, load_log, load_results
from analysis.table_export import Table, percent, points
from contracts import durable, seeds
from contracts.errors import UserError, run_command
from contracts.paths import ResultsFolder
from contracts.run_file import SCALES
from eval import significance
from eval.statistics import Estimate, avg_at_k, paired_difference
from frameworks.trained import ended
from recipes import sweeps
from recipes.runs import load_run

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """One setting of a sweep with its trainings.

    Attributes:
        number: from 1; its run is `<recipe>/<sweep>@<number>`.
        values: by key, as texts.
        runs: one per seed; a training that was ended at a sign of collapse has a log alone.
        collapsed: the evidence, by run, of trainings with a grave sign of collapse.
    """

    number: int
    values: dict[str, str]
    runs: list[RunResults]
    collapsed: dict[str, str]

    @property
    def trained(self) -> Recipe:
        """Its trainings together."""
        return Recipe(self.runs)

    @property
    def evaluated(self) -> bool:
        """Whether every training reached its end, so that there is a mean over seeds."""
        return all(run.evaluated for run in self.runs)

    @property
    def shown(self) -> str:
        """The values in one line."""
        return ", ".join(
            f"{key.rpartition('.')[2]} {value}" if "." in key else value for key, value in self.values.items()
        )

    @property
    def accuracy(self) -> Estimate:
        """At each seed's last checkpoint, the mean over seeds and benchmarks as a fraction, with its interval."""
        if self.trained.several:
            return training_seeds.accuracy(self.trained, None, self.runs[0].benchmarks)
        run = self.runs[0]
        return mean_of([avg_at_k(run.correct(run.last, name)) for name in run.benchmarks])

    @property
    def gain(self) -> Estimate:
        """The same less the base model's, paired by problem."""
        return training_seeds.gain(self.trained, None, self.runs[0].benchmarks)


def collapse_of(results: Path, run: RunResults) -> str:
    """Why a training was ended, or the first grave sign of collapse in its log; empty without one."""
    signs = (found.text for found in diagnostics.diagnose(run) if found.topic == "collapse")
    return ended(ResultsFolder(results).run(run.name)) or next(signs, "")


def read(name: str, scale: str, numbers: Sequence[int], results: Path) -> list[Setting]:
    """The settings of a sweep with their stored results.

    Args:
        name: `<recipe>/<sweep>`.
        scale: demo or full.
        numbers: the seeds.
        results: of that scale.

    Raises:
        UserError: a training is missing or incomplete, or trainings were not measured in the same way.
    """
    found: list[Setting] = []
    first: RunResults | None = None
    for number, values in enumerate(sweeps.settings(name, scale), start=1):
        runs = [_training(results, seeds.run_id(f"{name}@{number}", seed)) for seed in numbers]
        for run in (run for run in runs if run.evaluated):
            first = first or run
            if run.benchmarks != first.benchmarks:
                raise UserError(f"{run.name} and {first.name} should have the same benchmarks, but have others")
            if reasons := checkpoint_comparison.obstacles(first, run, run.benchmarks):
                raise UserError(f"{run.name} and {first.name} cannot be compared: {reasons}")
        texts = {key: sweeps.value_text(value) for key, value in values.items()}
        collapsed = {run.name: evidence for run in runs if (evidence := collapse_of(results, run))}
        found.append(Setting(number, texts, runs, collapsed))
    return found


def _training(results: Path, name: str) -> RunResults:
    """One training with its checkpoints' samples, or with its log alone if it was ended at a sign of collapse."""
    folder = ResultsFolder(results).run(name)
    return load_log(results, name) if ended(folder) else load_results(results, name)


def _right(setting: Setting, benchmark: str) -> list[Floats]:
    """Per seed, right or wrong at the last checkpoint, of shape (problems, repeats)."""
    return [run.correct(run.last, benchmark).astype(float) for run in setting.runs]


@dataclass(frozen=True)
class Chosen:
    """The best setting, chosen on half of the problems for the other half.

    Attributes:
        settings: the chosen setting for either half; twice the same, if both halves agree.
        accuracy: on the problems it was not chosen on, as a fraction.
        less_first: by `snakemake compare`'s tests, less the first setting's; None with one seed.
        difference: the same difference with its interval; with one seed it holds for these trainings alone. None if a
            training of the first setting was ended.
    """

    settings: tuple[Setting, Setting]
    accuracy: Estimate
    less_first: recipes.RecipeResult | None
    difference: Estimate | None


def choose(found: Sequence[Setting]) -> Chosen | None:
    """The best setting without a collapse, or of all that reached their end; None if there is none. See Chosen."""
    able = [setting for setting in found if setting.evaluated and not setting.collapsed]
    able = able or [setting for setting in found if setting.evaluated]
    if not able:
        return None
    any_run = able[0].runs[0]
    names = any_run.benchmarks
    sides = {name: np.array([half(problem) for problem in any_run.problems(name)]) for name in names}

    def on(setting: Setting, side: int) -> float:
        parts = [np.stack(_right(setting, name))[:, sides[name] == side] for name in names]
        return float(np.mean([part.mean() for part in parts if part.size]))

    best = tuple(max(able, key=lambda setting: on(setting, 1 - side)) for side in (0, 1))
    mixed = {
        name: [
            np.where((sides[name] == 0)[:, None], zero, one)
            for zero, one in zip(*(_right(setting, name) for setting in best), strict=True)
        ]
        for name in names
    }
    if found[0].trained.several:
        accuracy = recipes.over_seeds([np.stack([run.mean(axis=1) for run in mixed[name]]) for name in names])
    else:
        accuracy = mean_of([avg_at_k(mixed[name][0] > 0) for name in names])
    chosen = (best[0], best[1])
    if not found[0].evaluated:
        return Chosen(chosen, accuracy, None, None)
    first = {name: _right(found[0], name) for name in names}
    if found[0].trained.several:
        line = recipes.compare(first, mixed)[-1]
        return Chosen(chosen, accuracy, line, line.welch.difference)
    gaps = [paired_difference(first[name][0] > 0, mixed[name][0] > 0) for name in names]
    return Chosen(chosen, accuracy, None, mean_of(gaps))


def settings_table(found: Sequence[Setting]) -> Table:
    """Per setting: accuracy, gain over the base model, difference from the first setting, and collapsed trainings."""
    first, compared = found[0], [setting for setting in found[1:] if setting.evaluated]
    lines = {}
    if first.evaluated and first.trained.several and compared:
        names = first.runs[0].benchmarks
        results = [training_seeds.compare(first.trained, other.trained, names) for other in compared]
        adjusted = significance.holm([max(line.welch.p_value, line.crossed.p_value) for line in results])
        lines = {other.number: line for other, line in zip(compared, zip(results, adjusted, strict=True), strict=True)}
    data, shown = [], []
    for setting in found:
        accuracy, gain = (setting.accuracy, setting.gain) if setting.evaluated else (None, None)
        gap, p, verdict = None, None, ""
        if setting.number in lines:
            line, p = lines[setting.number]
            gap = line.welch.difference
            decided = "better" if gap.value > 0 else "worse"
            verdict = decided if p <= significance.ALPHA else "cannot tell"
        ended_runs = sum(not run.evaluated for run in setting.runs)
        data.append(
            {
                "setting": setting.number, **setting.values, "seeds": len(setting.runs),
                **interval_columns({"accuracy": accuracy, "gain": gain, "less_first": gap}),
                "p_adjusted": p, "collapsed": len(setting.collapsed), "ended": ended_runs,
            }
        )  # fmt: skip
        shown.append(
            {
                "setting": str(setting.number),
                **setting.values,
                "last checkpoint (%)": interval_text(accuracy, percent) if accuracy else f"{ended_runs} ended",
                "gain over the base model (points)": interval_text(gain, points) if gain else "–",
                "less setting 1 (points)": f"{interval_text(gap, points)}, {verdict}" if gap else "–",
                "collapsed": f"{len(setting.collapsed)} of {len(setting.runs)}",
            }
        )
    return Table("settings", pd.DataFrame(data), pd.DataFrame(shown))


def sentences(found: Sequence[Setting], chosen: Chosen | None) -> list[str]:
    """What the sweep shows, for the top of its page."""
    text = [_best(found[0], chosen) if chosen else "Every setting has a training that was ended at a sign of collapse."]
    if not found[0].trained.several:
        text.append("One seed of each: this compares checkpoints, not settings. Add seeds='[0,1,2,3,4]'.")
    lost = [setting for setting in found if setting.collapsed]
    parts = ", ".join(f"{setting.number} ({len(setting.collapsed)} of {len(setting.runs)})" for setting in lost)
    text.append(
        f"Settings with a grave sign of collapse, not chosen from, and how many of their trainings show it: {parts}."
        if lost
        else "No training shows a grave sign of collapse."
    )
    return text


def _best(first: Setting, chosen: Chosen) -> str:
    one, two = chosen.settings
    best = f"setting {one.number} ({one.shown})"
    if one.number != two.number:
        best = f"setting {one.number} on one half, {two.number} on the other"
    text = (
        f"Best, chosen on half of the problems and reported on the other: {best}, with "
        f"{interval_text(chosen.accuracy, percent)} % right"
    )
    if chosen.difference and not one.number == two.number == first.number:
        text += f", {interval_text(chosen.difference, points)} points beside setting 1"
        if chosen.less_first:
            text += ", cannot tell" if chosen.less_first.verdict == "cannot tell" else ", beyond chance"
    return f"{text}."


def draw(found: Sequence[Setting], folder: Path) -> dict[str, str]:
    """The figures as SVG, which are written to the folder, too."""
    figure_style.set_style()
    return {"sweep": _accuracies(found, folder), "sweep_training": _by_step(found, folder)}


def _accuracies(found: Sequence[Setting], folder: Path) -> str:
    """Accuracy by the first key; the second key's values are lines, the third's are panels."""
    keys = list(found[0].values)
    values = [list(dict.fromkeys(setting.values[key] for setting in found)) for key in keys]
    titles = values[2] if len(keys) > 2 else [""]
    lines = values[1] if len(keys) > 1 else [""]
    styles = figure_style.run_styles(lines)
    figure, axes = figure_style.panels(len(titles), min(len(titles), 2), 2.8, sharex=False, sharey=True)
    base = next((run for setting in found for run in setting.runs if run.evaluated), None)
    for place, title in zip(axes, titles, strict=True):
        if base:
            before = np.mean([base.correct(base.steps[0], name).mean() for name in base.benchmarks])
            place.axhline(100 * before, color=figure_style.FAINT, linestyle=":", linewidth=1)
        for setting in found:
            texts = [*setting.values.values(), "", ""]
            if texts[2] != title and len(keys) > 2:
                continue
            style, turn = styles[texts[1] if len(keys) > 1 else ""], lines.index(texts[1]) if len(keys) > 1 else 0
            x = values[0].index(texts[0]) + 0.14 * (turn - (len(lines) - 1) / 2)
            if not (base and setting.evaluated):
                ended_runs = sum(not run.evaluated for run in setting.runs)
                place.annotate(
                    f"{ended_runs} ended", (x, 0.02), xycoords=("data", "axes fraction"), rotation=90, ha="center",
                    fontsize=8, color=style.colour,
                )  # fmt: skip
                continue
            value = setting.accuracy
            place.errorbar(
                [x], [100 * value.value], [[100 * (value.value - value.low)], [100 * (value.high - value.value)]],
                fmt=style.marker, color=style.colour, markersize=figure_style.MARKER_SIZE, capsize=2,
            )  # fmt: skip
            each = training_seeds.of_each_seed(setting.trained, None, base.benchmarks)
            for run, height in zip(setting.runs, each, strict=True):
                lost = run.name in setting.collapsed
                place.plot(
                    [x + 0.05], [100 * height], "x" if lost else ".", markersize=7 if lost else 4,
                    color=figure_style.INK if lost else style.colour, alpha=1 if lost else 0.6,
                )  # fmt: skip
        place.set_xticks(range(len(values[0])), [figure_style.broken(value) for value in values[0]])
        place.set_xlim(-0.6, len(values[0]) - 0.4)
        place.set(ylabel="last checkpoint, % right", xlabel=keys[0])
        place.set_title(f"{keys[2]} {title}" if title else "")
    if len(keys) > 1:
        handles = [figure_style.run_handle(styles[line]) for line in lines]
        figure_style.legend(figure, handles, [f"{keys[1]} {line}" for line in lines])
    return figure_style.save(figure, folder, "sweep")


TRAINING = {"accuracy": "right in training, %", "response_length_mean": "tokens", "wrong": "tokens of wrong answers"}


def by_step(setting: Setting) -> pd.DataFrame:
    """The columns of TRAINING by step, the mean over seeds; lengths of wrong answers are those of stored rollouts."""
    parts = []
    for run in setting.runs:
        log = run.log.set_index("step")[["accuracy", "response_length_mean"]].astype(float)
        wrong = run.rollouts[run.rollouts["verdict"] == "wrong"]
        parts.append(log.assign(wrong=wrong.groupby("step")["completion_tokens"].mean()))
    return pd.concat(parts).groupby(level=0).mean()


def _by_step(found: Sequence[Setting], folder: Path) -> str:
    """Accuracy and lengths by step, one line per setting."""
    styles = figure_style.run_styles([setting.shown for setting in found])
    figure, axes = figure_style.panels(len(TRAINING), 3, 2.2, xlabel="step")
    for setting in found:
        table, style = by_step(setting), styles[setting.shown]
        width = figure_style.window(len(table))
        for place, column in zip(axes, TRAINING, strict=True):
            scale = 100 if column == "accuracy" else 1
            smooth = figure_style.running_mean(scale * table[column], width)
            place.plot(smooth.index, smooth, color=style.colour, linestyle=style.dash)
            place.set_title(TRAINING[column])
    figure_style.run_legend(figure, styles)
    return figure_style.save(figure, folder, "sweep_training")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", metavar="RECIPE/SWEEP")
    parser.add_argument("--scale", choices=SCALES, default="demo")
    parser.add_argument("--seeds", type=int, nargs="+", required=True, metavar="SEED")
    parser.add_argument("--results", type=Path, required=True, help="the results of this scale, such as results/demo")
    parser.add_argument("--output", type=Path, required=True, help="folder for the page, its table and figures")
    arguments = parser.parse_args()
    found = read(arguments.sweep, arguments.scale, arguments.seeds, arguments.results)
    chosen, table = choose(found), settings_table(found)
    table_export.write(table, arguments.output)
    figures = draw(found, arguments.output)
    text = page.environment().get_template("sweep.html.j2").render(
        css=page.css(), title=load_run(found[0].runs[0].name.rpartition("/")[0], arguments.scale).title,
        name=arguments.sweep, scale=arguments.scale, seeds=arguments.seeds, sentences=sentences(found, chosen),
        figures={name: page.inline_svg(svg, name, name) for name, svg in figures.items()},
        table=page.plain(table.shown), keys=len(found[0].values),
        collapsed=[(run, why) for setting in found for run, why in setting.collapsed.items()],
    )  # fmt: skip
    durable.write_text(arguments.output / "index.html", text)
    print(f"sweep: {arguments.output / 'index.html'}")


if __name__ == "__main__":
    run_command(main)
