"""A recipe beside its controls (recipes.controls): did it gain more than the same training without the right reward?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from analysis.pages.table_texts import Table, interval_columns, interval_text, points
from analysis.report.report_data import ReportData, RunFacts
from analysis.report.section import Content, Section
from analysis.statistics import checkpoint_difference, training_seeds
from analysis.statistics.training_seeds import Recipe
from contracts import seeds
from eval.statistics import Estimate
from recipes.controls import TITLES

VERDICTS = {"rose": "the {} is better than the control", "fell": "the control is better", "cannot tell": "cannot tell"}


def _beyond(control: Recipe, recipe: Recipe, benchmarks: Sequence[str]) -> tuple[str, Estimate, str]:
    """Of what the comparison is, how much the recipe is above its control, and the verdict."""
    if recipe.has_several_seeds and control.has_several_seeds:
        line = training_seeds.compare(control, recipe, benchmarks)
        change = {"B is better": "rose", "A is better": "fell"}.get(line.verdict, line.verdict)
        return "recipe", line.interval(), VERDICTS[change].format("recipe")
    gap = checkpoint_difference.between_runs(control.runs[0], recipe.runs[0], benchmarks)
    return "checkpoint", gap, VERDICTS[gap.change].format("checkpoint")


def controls_table(recipes: Sequence[Recipe], facts: Mapping[str, RunFacts]) -> Table | None:
    """A row for each control whose recipe is on the page too; None if there is none.

    Args:
        recipes: all of the page.
        facts: what the runs are, by name.
    """
    known: dict[str, Recipe] = {}
    for recipe in recipes:
        known.setdefault(seeds.run_of(recipe.runs[0].name), recipe)
    data, texts = [], []
    for control in recipes:
        what = facts[control.runs[0].name]
        beside = known.get(what.control_of or "")
        if not (what.control and beside):
            continue
        shared = [name for name in control.runs[0].benchmarks if name in beside.runs[0].benchmarks]
        why = checkpoint_difference.obstacles(control.runs[0], beside.runs[0], shared) or (
            "" if shared else "no benchmark"
        )
        names = {"recipe": beside.display_name, "control": TITLES[what.control], "trained": control.display_name}
        row: dict[str, object] = {
            "recipe": seeds.run_of(beside.runs[0].name), "control": what.control, "not_compared": why,
        }  # fmt: skip
        if why:
            texts.append({**names, "verdict": f"not compared: {why}"})
            data.append(row)
            continue
        subject, gap, verdict = _beyond(control, beside, shared)
        gains = [training_seeds.gain(one, None, shared) for one in (beside, control)]
        columns = interval_columns({"recipe_gain": gains[0], "control_gain": gains[1], "difference": gap})
        data.append({**row, "about": subject, **columns, "verdict": verdict})
        texts.append(
            {
                **names,
                "gain of the recipe's run (points)": interval_text(gains[0], points),
                "gain of the control (points)": interval_text(gains[1], points),
                "last checkpoints, less the control (points)": interval_text(gap, points),
                "verdict": verdict,
            }
        )
    if not texts:
        return None
    return Table("controls", pd.DataFrame(data), pd.DataFrame(texts).fillna("–"))


def content(report: ReportData) -> Content | None:
    """The table, where a control is on the page beside its recipe."""
    table = controls_table(report.recipes, report.facts)
    return Content([table]) if table else None


SECTION = Section(
    order=220,
    content=content,
    tables={
        "controls": (
            "Recipes beside their controls, trained in the same way with a random reward, the format reward alone, or "
            "the reward of the opposite sign: the gain of both over the base model, and the difference."
        )
    },
    text="""\
{{ table("controls", "Recipes beside their controls, trained in the same way with a reward that does not say
which answers are right.", 3) }}
<p class="soft">A gain that a control has too says nothing about the reward (arXiv:2506.10947). A sentence about a
recipe needs several training seeds on both sides; otherwise the line is about these checkpoints.</p>
""",
)
