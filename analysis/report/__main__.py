"""Make the report of one or several runs from their stored results: tables, figures, and one self-contained page.

    python -m analysis.report --results results/demo --run openr1/math-7b/seed-0 --output results/demo/report

Nothing is generated or graded again, no GPU is needed, and a run with a hole in its results is refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from analysis import patterns, table_export
from analysis.report import (
    bad_cases,
    figure_style,
    figures_heldout,
    figures_lengths,
    figures_training,
    page,
    published,
    run_comparison,
    sample_browser,
    sample_pairs,
    tables,
)
from analysis.report.accuracy import run_rows
from analysis.report.diagnostics import findings
from analysis.report.summary import headline, summary
from analysis.results import Run, in_order, load_run
from contracts import provenance
from contracts.errors import UserError, run_command

# The table that holds the numbers of a figure.
NUMBERS = {
    "heldout_accuracy": "accuracy", "outcomes": "verdicts", "finished": "verdicts", "reasoning_patterns": "patterns",
}  # fmt: skip


def draw(
    runs: Sequence[Run], counts: pd.DataFrame, lists: Sequence[patterns.PatternList], folder: Path
) -> dict[str, Markup]:
    """Draw the figures that there are results for into a folder, as SVG and PNG; returns their SVG, by name."""
    figure_style.set_style()
    found = set(counts.loc[counts["matches"] > 0, "pattern"]) | {item.name for item in lists if item.always}
    lists = [item for item in lists if item.name in found]
    trained = [run for run in runs if run.trained]
    figures = {
        "heldout_accuracy": figures_heldout.heldout_accuracy(runs),
        "outcomes": figures_heldout.outcomes(runs),
        "finished": figures_lengths.finished(runs),
        "reasoning_patterns": figures_heldout.reasoning_patterns(runs, counts, lists),
    }
    # A figure without a single value is left out.
    if any(run.graded["completion_tokens"].notna().any() for run in runs):
        figures["length_distribution"] = figures_lengths.length_distribution(runs)
        if any(figures_lengths.thinks(run) for run in runs):
            figures["thinking"] = figures_lengths.thinking(runs)
    if trained:
        figures |= {
            "reward": figures_training.reward(trained),
            "response_length": figures_training.response_length(trained),
            "rates": figures_training.rates(trained),
            "training_patterns": figures_lengths.training_patterns(trained, lists),
        }
    return {
        name: page.inline_svg(figure_style.save(figure, folder, name), name, page.caption(name))
        for name, figure in figures.items()
    }


def report(runs: Sequence[Run], output: Path, title: str, scale: str, overlap: Path | None = None) -> Path:
    """Write tables/, figures/ and index.html of some runs into a folder; returns the page's path.

    Args:
        runs: what load_run read.
        output: the folder.
        title: of the page.
        scale: demo or full; shown.
        overlap: the table of tasks.overlap (CSV), if there is one.
    """
    rows = {run.name: run_rows(run) for run in runs}
    facts = {run.name: run_comparison.about(run, scale) for run in runs}
    lists = patterns.load_lists()
    counts = pd.concat([patterns.table(run, lists) for run in runs], ignore_index=True)
    completed, verdicts = tables.completed_table(runs), tables.verdicts_table(runs)
    pattern_counts = tables.patterns_table(runs, counts, lists)
    every_row = [row for name in rows for row in rows[name]]
    shared = tables.overlap_table(overlap) if overlap else None
    side_by_side, pairs = run_comparison.runs_table(runs, rows, facts), run_comparison.pairs_table(runs)
    beside = run_comparison.beside_published(runs, facts)
    bad_of = {run.name: bad_cases.count(run) for run in runs}
    bad = bad_cases.table(runs, pd.concat([counts for counts, _ in bad_of.values()], ignore_index=True))
    sample_browser.write(runs, lists, title, output / "samples")
    made = [
        bad,
        tables.accuracy_table(every_row),
        tables.differences_table(every_row),
        completed,
        verdicts,
        pattern_counts,
    ]
    made += [tables.accuracy_table(own, f"accuracy-{name.replace('/', '-')}") for name, own in rows.items()]
    printed = {name: published.rows(name) for name in published.table_names()}
    made += [tables.accuracy_table(printed[name], f"published-{name}") for name in printed]
    for table in [*made, side_by_side, *(extra for extra in (pairs, beside, shared) if extra)]:
        table_export.write(table, output / "tables")
    warnings = [(run.name, found) for run in runs if (found := findings(run))]
    figures = draw(runs, counts, lists, output / "figures")
    text = page.render(
        {
            "title": title,
            "scale": scale,
            "runs": runs,
            "benchmarks": in_order({benchmark for run in runs for benchmark in run.benchmarks}),
            "checkpoints": sum(len(run.steps) for run in runs),
            "completions": sum(len(run.graded) for run in runs),
            "made_at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "made_with": provenance.collect(),
            "summary": summary(runs, rows, facts, [one for _, found in warnings for one in found], scale),
            "headlines": [headline(run, rows[run.name]) for run in runs],
            "findings": warnings,
            "figures": figures,
            "made_elsewhere": [run.name for run in runs if not run.trained],
            "numbers": NUMBERS,
            "captions": {name: page.caption(name) for name in figures},
            "bad_cases": [(run.name, page.of_run(bad, run.name), bad_of[run.name][1]) for run in runs],
            "bad_kinds": bad_cases.KINDS,
            "accuracy": list(rows.items()),
            "side_by_side": page.plain(side_by_side.shown),
            "run_pairs": page.plain(pairs.shown) if pairs else None,
            "beside_published": page.plain(beside.shown) if beside else None,
            "published": list(printed.items()),
            "published_shows": published.what_it_shows(printed),
            "published_source": published.source(),
            "by_run": [(run.name, page.of_run(completed, run.name), page.of_run(verdicts, run.name)) for run in runs],
            "pattern_counts": [(run.name, page.of_run(pattern_counts, run.name)) for run in runs],
            "pattern_lists": lists,
            "overlap": page.plain(shared.shown) if shared else None,
            "pairs": [
                (run.name, [pair for name in run.benchmarks for pair in sample_pairs.choose(run, name)]) for run in runs
            ],
        }
    )
    index = output / "index.html"
    index.write_text(text, encoding="utf-8")
    provenance.write(output, runs=[run.name for run in runs], scale=scale)
    return index


def main() -> None:
    """Read the command line and make the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="the results of one scale, such as results/demo")
    parser.add_argument(
        "--run", nargs="+", required=True, metavar="RECIPE/RUN/SEED", help="runs to report, in this order"
    )
    parser.add_argument(
        "--benchmark", nargs="+", default=[], help="benchmarks that must be there (default: those found)"
    )
    parser.add_argument("--output", type=Path, required=True, help="folder for the page, tables and figures")
    parser.add_argument("--overlap", type=Path, help="the table of tasks.overlap, shown on the page")
    parser.add_argument("--title", default="CrossZero report", help="title of the page")
    parser.add_argument("--scale", help="name of the scale, shown on the page (default: the results folder's name)")
    arguments = parser.parse_args()
    if len(set(arguments.run)) < len(arguments.run):
        raise UserError("each run should be named once, but one is named twice; name it once")
    runs = [load_run(arguments.results, name, arguments.benchmark) for name in arguments.run]
    scale = arguments.scale or arguments.results.resolve().name
    index = report(runs, arguments.output, arguments.title, scale, arguments.overlap)
    print(f"report: {index}")


if __name__ == "__main__":
    run_command(main)
