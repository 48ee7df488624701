"""Published figures outside of the report's tables: those in the text of other documents, and a table of drawings.

The files are results/reference/document_figures.csv and svg_drawings.csv.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.pages.table_texts import Table, percent
from analysis.reference import DRAWINGS, FIGURES, read_csv
from analysis.results import RunResults
from analysis.statistics.mean_intervals import mean

ALL_PROMPTS = "mean over the prompts drawn (%)"


def figures_table(claimed: Table) -> Table:
    """Each figure with what was measured here for the claim that it belongs to.

    Args:
        claimed: the table of claims (analysis.claims.table).
    """
    figures = read_csv(FIGURES, text=True)
    ours = claimed.data.set_index("id")[["measured", "verdict"]]
    data = figures.join(ours, on="claim").fillna("")
    shown = data.assign(line="line " + data["line"]).replace("", "–").drop(columns="claim")
    return Table("document_figures", data, shown)


def share(cell: str) -> float:
    """The share of successes in a cell such as 3/16; NaN if nothing was drawn."""
    if not cell:
        return float("nan")
    successes, draws = map(int, cell.split("/"))
    return successes / draws


def drawn(run: RunResults, step: int) -> dict[str, str]:
    """Successes and draws, such as 3/16, of a checkpoint on each printed prompt that it was given.

    Problems name the printed prompt in `meta.printed`; what could not be judged is left out.
    """
    counts: dict[str, str] = {}
    for benchmark, problems in run.problem_rows.items():
        rows = run.rows(step, benchmark)
        for name, verdicts in rows[rows["verdict"] != "ungradable"].groupby("problem_id")["verdict"]:
            if prompt := problems[str(name)].meta.get("printed"):
                counts[str(prompt)] = f"{(verdicts == 'correct').sum()}/{len(verdicts)}"
    return counts


def drawings_table(runs: Sequence[RunResults] = ()) -> Table:
    """Successes and draws of each model on each prompt as printed, and each model's mean over prompts.

    Models drew different prompts, so that their means are not comparable. Checkpoints that drew the same prompts, and
    were judged by geometry, are further columns.

    Args:
        runs: of whose checkpoints the first and the last are shown.
    """
    printed = read_csv(DRAWINGS, text=True).fillna("").drop(columns="line").set_index("prompt")
    for run in runs:
        for step in dict.fromkeys((run.steps[0], run.last)):
            if counts := drawn(run, step):
                printed[f"{run.display_name}, {run.label(step)}"] = [
                    counts.get(str(name), "") for name in printed.index
                ]
    shares = printed.map(share)
    parts = {model: mean(column.dropna().to_numpy()) for model, column in shares.items()}
    means = {
        model: f"{percent(part.value)} [{percent(max(part.low, 0))}, {percent(min(part.high, 1))}]"
        for model, part in parts.items()
    }
    shown = pd.concat([printed.replace("", "–"), pd.DataFrame(means, index=[ALL_PROMPTS])])
    return Table("svg_drawings", shares.reset_index(), shown.rename_axis("prompt").reset_index())
