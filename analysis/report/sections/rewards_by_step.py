"""For runs with several rewards: how often each fired at each step, so that one sees which taught what, and when.

A reward fires where it gives a completion another value than 0. Terms that most texts earn a part of (a count of tags,
a length) fire almost always: read their mean in the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from analysis.pages.figure_curves import SHARES, Panel, curves, on_one_axis
from analysis.pages.figure_style import running_mean, window
from analysis.pages.table_texts import Table, percent, points
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults
from analysis.statistics.training_seeds import Recipe

NAME = "rewards_by_step"
SMALLEST_CHANGE = 0.05  # of a share; below it no step is named as half-way
COLUMNS = ("run", "reward", "fired_first", "fired_last", "halfway_step", "mean_first", "mean_last")


def shares(run: RunResults, what: str = "fired") -> pd.DataFrame:
    """A column for each reward of the run, by position on the training axis; empty where nothing was recorded.

    Args:
        run: with its training log.
        what: `fired`, the share of completions, or `mean`, the value before it is weighed.
    """
    rows = [{} if recorded is None else {one["name"]: one[what] for one in recorded} for recorded in run.log["rewards"]]
    return pd.DataFrame(rows, index=on_one_axis(run.log)[0]).astype(float)


def has_several(run: RunResults) -> bool:
    """Whether the values of more than one reward were recorded."""
    return bool(len(shares(run).columns) > 1)


def plot_rewards(recipes: Sequence[Recipe]) -> Figure:
    """A panel for each reward, with the share of completions to which it gave something, over steps."""
    shares_by_run = {run.name: 100 * shares(run) for recipe in recipes for run in recipe.runs}
    names = list(dict.fromkeys(name for share in shares_by_run.values() for name in share.columns))

    def values(name: str, run: RunResults) -> pd.Series:
        share = shares_by_run[run.name]
        return share[name] if name in share else pd.Series(math.nan, index=share.index)

    panels = [Panel(name.replace("_", " "), "fired (%)", partial(values, name), SHARES) for name in names]
    return curves(recipes, panels, training=True, columns=min(3, len(panels)), sharey=True)


def halfway(share: pd.Series) -> float:
    """The first step at which half of the way from the first to the last tenth is gone; NaN if that is short."""
    mean = running_mean(share, window(len(share)))
    tenth = max(1, len(share) // 10)
    first, last = share.iloc[:tenth].mean(), share.iloc[-tenth:].mean()
    if not abs(last - first) >= SMALLEST_CHANGE:
        return math.nan
    there = mean[(mean - first) / (last - first) >= 0.5]
    return float(there.index[0]) if len(there) else math.nan


def rewards_table(runs: Sequence[RunResults]) -> Table:
    """How often each reward fired in the first and in the last tenth of the steps, its means, and when it changed."""
    rows = []
    for run in runs:
        fired, means = shares(run), shares(run, "mean")
        tenth = max(1, len(fired) // 10)
        for name in fired.columns:
            ends = [
                part.mean()
                for values in (fired, means)
                for part in (values[name].iloc[:tenth], values[name].iloc[-tenth:])
            ]
            rows.append((run.name, name, *ends[:2], halfway(fired[name]), *ends[2:]))
    data = pd.DataFrame(rows, columns=list(COLUMNS))
    change = data["fired_last"] - data["fired_first"]
    texts = {
        "run": data["run"],
        "reward": data["reward"],
        "fired, first tenth (%)": data["fired_first"].map(percent),
        "last tenth (%)": data["fired_last"].map(percent),
        "change (points)": ["–" if math.isnan(value) else points(value) for value in change],
        "half of it by step": ["–" if math.isnan(step) else f"{step:.0f}" for step in data["halfway_step"]],
        "mean, first tenth": data["mean_first"].map("{:.3f}".format),
        "last tenth": data["mean_last"].map("{:.3f}".format),
    }
    return Table(NAME, data, pd.DataFrame(texts))


def content(report: ReportData) -> Content | None:
    """The figure and the table, where a run recorded several rewards."""
    runs = [run for run in report.runs if has_several(run)]
    return Content([rewards_table(runs)], {NAME: plot_rewards(report.recipes_of(runs))}) if runs else None


SECTION = Section(
    order=610,
    content=content,
    tables={
        NAME: (
            "How often each reward of a run with several fired (gave another value than 0), and its mean before it is "
            "weighed, in the first and the last tenth of the steps, and the step by which half of the change was made."
        )
    },
    figures={
        NAME: (
            "For runs with several rewards, the share of completions at each step to which each reward gave another "
            "value than 0. Look at which rises first: format is usually paid before right answers are. A term that "
            "most texts earn a part of fires almost always; its mean is in the table. Faint points are steps; lines "
            "are centred running means."
        )
    },
    numbers={NAME: NAME},
    text="""\
{{ figure("rewards_by_step") }}
{{ table("rewards_by_step", "Rewards one by one, for runs with several.", 2) }}
""",
)
