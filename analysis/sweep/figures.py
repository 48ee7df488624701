"""The figures of a sweep: accuracy by setting, and training by step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.pages import figure_style
from analysis.statistics import training_seeds
from analysis.sweep.settings import Setting


def plot_sweep(settings: Sequence[Setting], folder: Path) -> dict[str, str]:
    """The figures as SVG, which are written to the folder, too."""
    figure_style.set_style()
    return {"sweep": _plot_accuracies(settings, folder), "sweep_training": _plot_training(settings, folder)}


def _plot_accuracies(settings: Sequence[Setting], folder: Path) -> str:
    """Accuracy by the first key; the second key's values are lines, the third's are panels."""
    keys = list(settings[0].values)
    values = [list(dict.fromkeys(setting.values[key] for setting in settings)) for key in keys]
    titles = values[2] if len(keys) > 2 else [""]
    lines = values[1] if len(keys) > 1 else [""]
    styles = figure_style.run_styles(lines)
    figure, panels = figure_style.panels(len(titles), min(len(titles), 2), 2.8, sharex=False, sharey=True)
    base = next((run for setting in settings for run in setting.runs if run.evaluated), None)
    for axes, title in zip(panels, titles, strict=True):
        if base:
            before = np.mean([base.correct(base.steps[0], name).mean() for name in base.benchmarks])
            axes.axhline(100 * before, color=figure_style.FAINT, linestyle=":", linewidth=1)
        for setting in settings:
            texts = [*setting.values.values(), "", ""]
            if texts[2] != title and len(keys) > 2:
                continue
            style, turn = styles[texts[1] if len(keys) > 1 else ""], lines.index(texts[1]) if len(keys) > 1 else 0
            x = values[0].index(texts[0]) + 0.14 * (turn - (len(lines) - 1) / 2)
            if not (base and setting.evaluated):
                ended_runs = sum(not run.evaluated for run in setting.runs)
                axes.annotate(
                    f"{ended_runs} ended", (x, 0.02), xycoords=("data", "axes fraction"), rotation=90, ha="center",
                    fontsize=8, color=style.colour,
                )  # fmt: skip
                continue
            value = setting.accuracy
            axes.errorbar(
                [x], [100 * value.value], [[100 * (value.value - value.low)], [100 * (value.high - value.value)]],
                fmt=style.marker, color=style.colour, markersize=figure_style.MARKER_SIZE, capsize=2,
            )  # fmt: skip
            each = training_seeds.accuracy_of_each_seed(setting.trained, None, base.benchmarks)
            for run, height in zip(setting.runs, each, strict=True):
                lost = run.name in setting.collapsed
                axes.plot(
                    [x + 0.05], [100 * height], "x" if lost else ".", markersize=7 if lost else 4,
                    color=figure_style.INK if lost else style.colour, alpha=1 if lost else 0.6,
                )  # fmt: skip
        axes.set_xticks(range(len(values[0])), [figure_style.broken(value) for value in values[0]])
        axes.set_xlim(-0.6, len(values[0]) - 0.4)
        axes.set(ylabel="last checkpoint, % right", xlabel=keys[0])
        axes.set_title(f"{keys[2]} {title}" if title else "")
    if len(keys) > 1:
        handles = [figure_style.run_handle(styles[line]) for line in lines]
        figure_style.legend(figure, handles, [f"{keys[1]} {line}" for line in lines])
    return figure_style.save(figure, folder, "sweep")


TRAINING = {"accuracy": "right in training, %", "response_length_mean": "tokens", "wrong": "tokens of wrong answers"}


def means_by_step(setting: Setting) -> pd.DataFrame:
    """The columns of TRAINING by step, the mean over seeds; lengths of wrong answers are those of stored rollouts."""
    parts = []
    for run in setting.runs:
        log = run.log.set_index("step")[["accuracy", "response_length_mean"]].astype(float)
        wrong = run.rollouts[run.rollouts["verdict"] == "wrong"]
        parts.append(log.assign(wrong=wrong.groupby("step")["completion_tokens"].mean()))
    return pd.concat(parts).groupby(level=0).mean()


def _plot_training(settings: Sequence[Setting], folder: Path) -> str:
    """Accuracy and lengths by step, one line per setting."""
    styles = figure_style.run_styles([setting.display_name for setting in settings])
    figure, panels = figure_style.panels(len(TRAINING), 3, 2.2, xlabel="step")
    for setting in settings:
        table, style = means_by_step(setting), styles[setting.display_name]
        width = figure_style.window(len(table))
        for axes, column in zip(panels, TRAINING, strict=True):
            scale = 100 if column == "accuracy" else 1
            smooth = figure_style.running_mean(scale * table[column], width)
            axes.plot(smooth.index, smooth, color=style.colour, linestyle=style.dash)
            axes.set_title(TRAINING[column])
    figure_style.run_legend(figure, styles)
    return figure_style.save(figure, folder, "sweep_training")
