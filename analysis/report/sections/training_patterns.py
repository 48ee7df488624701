"""Keywords of reasoning in the completions that were trained on."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis.measures import reasoning_patterns
from analysis.pages.figure_curves import Panel, curves
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults
from analysis.statistics.training_seeds import Recipe


def plot_training_patterns(recipes: Sequence[Recipe], lists: Sequence[reasoning_patterns.PatternList]) -> Figure:
    """Keyword matches per completion over training steps, in the completions that were trained on."""
    panels = []
    for item in lists:

        def per_completion(run: RunResults, regex: str = item.regex) -> pd.Series:
            matches = pd.Series(reasoning_patterns.count(run.rollouts["completion"], regex))
            return matches.groupby(run.rollouts["step"].to_numpy()).mean()

        title = item.title[0].upper() + item.title[1:]
        panels.append(Panel(title, "matches per completion", per_completion, 0.1))
    return curves(recipes, panels, training=True)


def content(report: ReportData) -> Content | None:
    """The figure, where there is a training."""
    if not report.trained:
        return None
    figure = plot_training_patterns(report.recipes_of(report.trained), report.matched_lists)
    return Content(figures={"training_patterns": figure})


SECTION = Section(
    order=620,
    content=content,
    figures={
        "training_patterns": (
            "Keywords of step-by-step reasoning and of reflection per training completion (a bounded sample of each "
            "step). Faint points are steps; lines are centred running means."
        )
    },
    text="""\
{{ figure("training_patterns") }}
""",
)
