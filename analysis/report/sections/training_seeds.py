"""Recipes with several training seeds: each over its seeds, and against each other."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.pages.table_texts import Table, interval_columns, interval_text, percent, points
from analysis.report.pair_verdicts import PagePairs
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.report.sections.run_pairs import P_COLUMN
from analysis.statistics.accuracy_rows import AVERAGE, BASE_MARKS
from analysis.statistics.training_seeds import SEED, Recipe, accuracy, accuracy_of_each_seed, gain
from analysis.statistics.training_seeds import obstacles as obstacles_of_page
from contracts import seeds

VERDICTS = {"rose": "the second recipe is better", "fell": "the first recipe is better"}


def _columns(recipe: Recipe) -> list[tuple[str, list[str]]]:
    names = recipe.runs[0].benchmarks
    return [*((name, [name]) for name in names), *([(AVERAGE, names)] if len(names) > 1 else [])]


def seeds_table(recipes: Sequence[Recipe]) -> Table:
    """Per recipe, checkpoint and benchmark: the mean over seeds, its interval, and the spread over seeds."""
    data, texts = [], []
    for recipe, step in [(each, step) for each in recipes for step in each.steps]:
        for title, names in _columns(recipe):
            each, mean = accuracy_of_each_seed(recipe, step, names), accuracy(recipe, step, names)
            change = gain(recipe, step, names) if step != recipe.steps[0] else None
            spread = float(each.std(ddof=1))
            data.append(
                {
                    "recipe": seeds.run_of(recipe.runs[0].name), "step": step, "benchmark": title, "seeds": len(each),
                    **interval_columns({"mean": mean, "gain": change}),
                    "deviation": spread, "lowest": float(each.min()), "highest": float(each.max()),
                }
            )  # fmt: skip
            texts.append(
                {
                    "recipe": recipe.display_name,
                    "checkpoint": recipe.runs[0].label(step),
                    "benchmark": title,
                    "mean over seeds (%)": interval_text(mean, percent),
                    "standard deviation over seeds (points)": f"{100 * spread:.1f}",
                    "lowest to highest seed (%)": f"{percent(float(each.min()))} to {percent(float(each.max()))}",
                    "gain over the base model (points)": (
                        f"{interval_text(change, points)} {BASE_MARKS[change.change]}" if change else "–"
                    ),
                }
            )
    return Table("seeds", pd.DataFrame(data), pd.DataFrame(texts))


def recipe_pairs_table(decided: PagePairs) -> Table | None:
    """Recipes against each other, by `snakemake compare_recipes`'s tests, on the benchmarks that both have."""
    data, texts = [], []
    for pair in decided.recipes:
        if pair.line is None or pair.difference is None:
            continue
        first, second = (SEED.sub("", side.display_name) for side in (pair.first, pair.second))
        verdict = VERDICTS.get(pair.change, pair.change)
        data.append(
            {
                "first": seeds.run_of(pair.first.name), "second": seeds.run_of(pair.second.name),
                **pair.difference._asdict(), "p_adjusted": pair.p_adjusted, "verdict": verdict,
            }
        )  # fmt: skip
        texts.append(
            {
                "first": f"{first}, {pair.line.seeds[0]} seeds",
                "second": f"{second}, {pair.line.seeds[1]} seeds",
                "benchmarks": len(pair.benchmarks),
                "second less first (points)": interval_text(pair.difference, points),
                "detectable": pair.line.detectable_text,
                P_COLUMN: f"{pair.p_adjusted:.4f}",
                "verdict": verdict,
            }
        )
    return Table("recipe_pairs", pd.DataFrame(data), pd.DataFrame(texts)) if texts else None


def content(report: ReportData) -> Content | None:
    """Both tables, of the recipes with several seeds."""
    obstacles = obstacles_of_page(report.runs)
    if not report.repeated_recipes:
        return Content([], values={"tests": 0, "obstacles": obstacles}) if obstacles else None
    pairs = recipe_pairs_table(report.pairs)
    tables = [seeds_table(report.repeated_recipes), *([pairs] if pairs else [])]
    return Content(tables, values={"tests": report.pairs.tests, "obstacles": obstacles})


SECTION = Section(
    order=230,
    content=content,
    tables={
        "seeds": (
            "Recipes with several training seeds: the mean over seeds at each checkpoint with a 95 % interval for new "
            "seeds and new problems, the standard deviation over seeds, the lowest and the highest seed, and the gain "
            "over the base model."
        ),
        "recipe_pairs": (
            "Recipes with several training seeds against each other at their last checkpoints, by the tests of "
            "snakemake compare_recipes. Verdicts are corrected for the number of pairs of the page; intervals are not."
        ),
    },
    text="""\
{% for why in obstacles %}<p>Not compared as seeds of one recipe: {{ why }}.</p>
{% endfor %}
{{ table("seeds", "Recipes over their training seeds. Means have 95 % intervals for new seeds and new problems.", 3) }}
{{ table("recipe_pairs", "Recipes against each other at their last checkpoints, by the tests of snakemake
compare_recipes: a verdict holds for new seeds and new problems. The chance of any false one, over the " ~ tests ~ "
comparison" ~ ("s" if tests > 1) ~ " of runs and of recipes on this page, is at most 5 % (Holm). Intervals and what is
detectable are for one pair alone.", 2) }}
""",
)
