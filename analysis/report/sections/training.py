"""The training logs: reward, lengths and rates over steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from analysis.pages.figure_curves import Panel, curves
from analysis.report import training_curves
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults
from analysis.statistics.training_seeds import Recipe


def has_answer_lengths(run: RunResults) -> bool:
    """Whether wrong answers with a known length were trained on."""
    wrong = run.rollouts["verdict"] == "wrong"
    return bool(run.rollouts.loc[wrong, "completion_tokens"].notna().any())


def plot_answer_lengths(recipes: Sequence[Recipe]) -> Figure:
    """Mean length of right and of wrong answers over training steps, among the completions that are kept of each."""

    def mean(verdict: str, run: RunResults) -> pd.Series:
        rows = run.rollouts[run.rollouts["verdict"] == verdict]
        return pd.to_numeric(rows["completion_tokens"], errors="coerce").groupby(rows["step"]).mean()

    panels = [
        Panel(title, "mean length (tokens)", partial(mean, verdict), 1.0)
        for verdict, title in (("correct", "Right answers"), ("wrong", "Wrong answers"))
    ]
    return curves(recipes, panels, training=True, sharey=True)


def content(report: ReportData) -> Content:
    """Figures of the runs' logs and of the imported ones."""
    figures = {}
    if logs := report.recipes_of([*report.trained, *report.logs]):
        figures["reward"] = training_curves.plot_reward(logs)
        figures["response_length"] = training_curves.plot_response_length(logs)
        if judged := [run for run in report.runs if has_answer_lengths(run)]:
            figures["answer_lengths"] = plot_answer_lengths(report.recipes_of(judged))
        figures["rates"] = training_curves.plot_rates(logs)
    return Content(figures=figures, values={"any_log": bool(logs)})


SECTION = Section(
    order=600,
    title="Training",
    anchor="training",
    content=content,
    figures={
        "answer_lengths": (
            "Mean length of right and of wrong answers in training, among the completions that are kept of each step. "
            "A loss that is averaged over each completion first, as GRPO's, punishes a long wrong answer less for "
            "each of its tokens; Dr. GRPO was made so that wrong answers no longer grow for this. Look at whether "
            "wrong answers grow while right ones do not."
        ),
        **{name: training_curves.CAPTIONS[name] for name in ("reward", "response_length", "rates")},
    },
    text="""\
{% if not any_log %}<p>There is no training to show.</p>{% endif %}
{% if report.logs %}
<p>Logs of trainings that were made elsewhere, drawn beside those of the runs:</p>
{{ imported_logs(report.logs) }}
{% endif %}
{{ figure("reward") }}
{{ figure("response_length") }}
{{ figure("answer_lengths") }}
{{ figure("rates") }}
""",
)
