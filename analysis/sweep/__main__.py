"""The page of a sweep (recipes/sweeps.py) from its stored results: `snakemake sweep`.

    python -m analysis.sweep openr1/group-size --scale demo --seeds 0 1 2 --results results/demo --output FOLDER

One table and one figure of the settings, and their training by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from analysis.pages import page, table_texts
from analysis.pages.table_texts import Table, interval_columns, interval_text, percent, points
from analysis.statistics import training_seeds
from analysis.sweep.figures import plot_sweep
from analysis.sweep.settings import Chosen, Setting, choose_best, read_settings
from contracts.run_file import SCALES
from eval.statistics import Estimate, significance
from recipes.runs import load_run
from system import durable
from system.command_line import argument_parser
from system.errors import run_command


def _differences_from_first(settings: Sequence[Setting]) -> dict[int, tuple[Estimate, float, str]]:
    """By setting: its accuracy less the first one's, Holm's p-value, and the verdict; nothing with one seed."""
    first, compared = settings[0], [setting for setting in settings[1:] if setting.evaluated]
    if not (first.evaluated and first.trained.has_several_seeds and compared):
        return {}
    names = first.runs[0].benchmarks
    results = [training_seeds.compare(first.trained, other.trained, names) for other in compared]
    adjusted = significance.holm([result.p_value for result in results])
    differences = {}
    for setting, result, p in zip(compared, results, adjusted, strict=True):
        difference = result.interval()
        direction = "better" if difference.value > 0 else "worse"
        verdict = direction if p <= significance.ALPHA else "cannot tell"
        differences[setting.number] = (difference, p, verdict)
    return differences


def settings_table(settings: Sequence[Setting]) -> Table:
    """Per setting: accuracy, gain over the base model, difference from the first setting, and collapsed trainings."""
    differences = _differences_from_first(settings)
    rows, text_rows = [], []
    for setting in settings:
        accuracy, gain = (setting.accuracy, setting.gain) if setting.evaluated else (None, None)
        gap, p, verdict = differences.get(setting.number, (None, None, ""))
        ended_runs = sum(not run.evaluated for run in setting.runs)
        rows.append(
            {
                "setting": setting.number, **setting.values, "seeds": len(setting.runs),
                **interval_columns({"accuracy": accuracy, "gain": gain, "less_first": gap}),
                "p_adjusted": p, "collapsed": len(setting.collapsed), "ended": ended_runs,
            }
        )  # fmt: skip
        text_rows.append(
            {
                "setting": str(setting.number),
                **setting.values,
                "last checkpoint (%)": interval_text(accuracy, percent) if accuracy else f"{ended_runs} ended",
                "gain over the base model (points)": interval_text(gain, points) if gain else "–",
                "less setting 1 (points)": f"{interval_text(gap, points)}, {verdict}" if gap else "–",
                "collapsed": f"{len(setting.collapsed)} of {len(setting.runs)}",
            }
        )
    return Table("settings", pd.DataFrame(rows), pd.DataFrame(text_rows))


def summary_sentences(settings: Sequence[Setting], chosen: Chosen | None) -> list[str]:
    """What the sweep shows, for the top of its page."""
    text = [
        _best_sentence(settings[0], chosen)
        if chosen
        else "Every setting has a training that was ended at a sign of collapse."
    ]
    if not settings[0].trained.has_several_seeds:
        text.append(
            "One seed of each: this compares checkpoints, not settings, and the luck of the seeds counts as a gain. "
            "Add seeds='[0,1,2,3,4]'."
        )
    lost = [setting for setting in settings if setting.collapsed]
    parts = ", ".join(f"{setting.number} ({len(setting.collapsed)} of {len(setting.runs)})" for setting in lost)
    text.append(
        f"Settings with a grave sign of collapse, not chosen from, and how many of their trainings show it: {parts}."
        if lost
        else "No training shows a grave sign of collapse."
    )
    return text


def _best_sentence(first: Setting, chosen: Chosen) -> str:
    """The best setting and its figures, and by what it was chosen."""
    best, folds = chosen.setting, len(chosen.choices)
    apart = "the other seeds and half of the problems" if folds > 2 else "half of the problems"
    text = f"Best, chosen by {apart} and reported on the rest: setting {best.number} ({best.display_name})"
    if chosen.times < folds:
        text += f", in {chosen.times} of {folds} choices"
    text += f", with {interval_text(chosen.accuracy, percent)} % right"
    if chosen.difference and {choice.number for choice in chosen.choices} != {first.number}:
        text += f", {interval_text(chosen.difference, points)} points beside setting 1"
        if chosen.less_first:
            text += ", cannot tell" if chosen.less_first.verdict == "cannot tell" else ", beyond chance"
    return f"{text}."


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("sweep", metavar="RECIPE/SWEEP")
    parser.add_argument("--scale", choices=SCALES, default="demo")
    parser.add_argument("--seeds", type=int, nargs="+", required=True, metavar="SEED")
    parser.add_argument("--results", type=Path, required=True, help="the results of this scale, such as results/demo")
    parser.add_argument("--output", type=Path, required=True, help="folder for the page, its table and figures")
    arguments = parser.parse_args()
    settings = read_settings(arguments.sweep, arguments.scale, arguments.seeds, arguments.results)
    chosen, table = choose_best(settings), settings_table(settings)
    table_texts.write(table, arguments.output)
    figures = plot_sweep(settings, arguments.output)
    sentences = summary_sentences(settings, chosen)
    text = page.environment().get_template("sweep.html.j2").render(
        css=page.css(), title=load_run(settings[0].runs[0].name.rpartition("/")[0], arguments.scale).title,
        name=arguments.sweep, scale=arguments.scale, seeds=arguments.seeds,
        sentences=sentences,
        figures={name: page.inline_svg(svg, name, name) for name, svg in figures.items()},
        table=page.plain(table.display), keys=len(settings[0].values),
        collapsed=[(run, why) for setting in settings for run, why in setting.collapsed.items()],
    )  # fmt: skip
    durable.write_text(arguments.output / "index.md", "\n".join(sentences) + "\n")
    durable.write_text(arguments.output / "index.html", text)
    print(f"sweep: {arguments.output / 'index.html'}")


if __name__ == "__main__":
    run_command(main)
