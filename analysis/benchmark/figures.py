"""The figures of a benchmark: accuracy by time, what a step consists of, and how both grow with what was varied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from analysis.benchmark.groups import Group
from analysis.measures import phases
from analysis.pages import figure_style

ROW, BORDER = 0.3, 1.1  # inches


def plot(groups: Sequence[Group], accuracy: float, folder: Path) -> dict[str, str]:
    """All figures as SVG by name, which are written to the folder, too."""
    figure_style.set_style()
    figures = {"step_by_phase": plot_step_by_phase(groups, folder)}
    if any(training.curve for group in groups for training in group.trainings):
        figures["accuracy_by_time"] = plot_accuracy_by_time(groups, accuracy, folder)
    if alike := varied_alike(groups):
        figures["growth"] = plot_growth(alike, folder)
    return figures


def plot_accuracy_by_time(groups: Sequence[Group], accuracy: float, folder: Path) -> str:
    """A thin line for each training, in the colour of its group; dotted, the accuracy to reach."""
    styles = figure_style.run_styles([group.name for group in groups])
    figure, (axes,) = figure_style.panels(1, 1, 3.0, xlabel="minutes of training")
    for group in groups:
        style = styles[group.name]
        for training in group.trainings:
            times, values = [row[1] / 60 for row in training.curve], [100 * row[2] for row in training.curve]
            axes.plot(
                times, values, color=style.colour, linestyle=style.dash, marker=style.marker, linewidth=1,
                markersize=figure_style.MARKER_SIZE - 1, alpha=0.8,
            )  # fmt: skip
    axes.axhline(100 * accuracy, color=figure_style.FAINT, linestyle=":", linewidth=1)
    axes.set_ylabel("right on held-out problems, %")
    axes.set_xlim(left=0)
    target = Line2D([], [], color=figure_style.FAINT, linestyle=":", linewidth=1)
    figure_style.run_legend(figure, styles, [(target, f"{100 * accuracy:.1f} %")])
    return figure_style.save(figure, folder, "accuracy_by_time")


def plot_step_by_phase(groups: Sequence[Group], folder: Path) -> str:
    """For each group the mean seconds of a step by phase, and of what a training has once."""
    figure, panels = plt.subplots(
        1, 2, figsize=(figure_style.WIDTH, ROW * len(groups) + BORDER), sharey=True, width_ratios=[3, 1]
    )
    drawn = set()
    for row, group in enumerate(reversed(groups)):
        for axes, once in zip(panels, (False, True), strict=True):
            left = 0.0
            for phase, value in phases.in_order(group.mean_phases(once)):
                axes.barh(row, max(value, 0.0), left=left, color=phases.colour(phase), height=0.7, linewidth=0)
                left += max(value, 0.0)
                drawn.add(phases.kind(phase))
    for axes, label in zip(panels, ("seconds of a step", "seconds, once"), strict=True):
        axes.set_yticks(range(len(groups)), [figure_style.broken(group.name) for group in reversed(groups)])
        axes.set_xlabel(label)
        axes.grid(visible=False, axis="y")
    order = [name for name in phases.KINDS if name in drawn]
    figure_style.legend(figure, [Patch(facecolor=phases.colour(name)) for name in order], order)
    return figure_style.save(figure, folder, "step_by_phase")


def varied_alike(groups: Sequence[Group]) -> list[Group]:
    """The groups with values of the first setting that was varied; none without two values of it."""
    keys = [group.varied_key for group in groups if group.varied_value is not None]
    alike = [group for group in groups if group.varied_value is not None and group.varied_key == keys[0]]
    return alike if len({repr(group.varied_value) for group in alike}) > 1 else []


def plot_growth(groups: Sequence[Group], folder: Path) -> str:
    """Seconds of a step and peak memory by the value of the one setting that was varied, one line for each run."""
    lines: dict[str, list[Group]] = {}
    for group in groups:
        lines.setdefault(group.line, []).append(group)
    styles = figure_style.run_styles(list(lines))
    figure, panels = figure_style.panels(2, 2, 2.6, xlabel=groups[0].varied_key)
    values = [group.varied_value for group in groups]
    numeric = all(
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e100 for value in values
    )  # what is larger cannot be drawn
    names = list(dict.fromkeys(map(str, values)))  # of positions, where values are no numbers

    def position(group: Group) -> float:
        return float(group.varied_value) if numeric else names.index(str(group.varied_value))

    for line, members in lines.items():
        style, members = styles[line], sorted(members, key=position)
        for axes, estimates in (
            (panels[0], [group.seconds_of_step for group in members]),
            (panels[1], [group.mean_of("host_memory_gb") for group in members]),
        ):
            heights = [estimate.value if estimate else float("nan") for estimate in estimates]
            axes.plot(
                [position(group) for group in members], heights, color=style.colour, linestyle=style.dash,
                marker=style.marker,
            )  # fmt: skip
    ticks, labels = (sorted(set(values)), None) if numeric else (range(len(names)), names)
    for axes, title in zip(panels, ("seconds of a step", "peak memory of the host, GB"), strict=True):
        axes.set_title(title)
        highest = axes.dataLim.y1  # infinite where nothing is known
        axes.set_ylim(0, 1.08 * highest if 0 < highest < float("inf") else 1)
        axes.set_xticks(ticks, labels)
    figure_style.run_legend(figure, styles)
    return figure_style.save(figure, folder, "growth")
