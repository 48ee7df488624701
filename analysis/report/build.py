"""Build the report: tables, figures, the sample browser, and the page that shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from analysis import fidelity
from analysis.claims import table as claims
from analysis.measures import reasoning, reasoning_patterns, turning_points
from analysis.measures.diagnostics import diagnose
from analysis.pages import figure_style, page, run_titles, table_texts
from analysis.provenance_summary import deviations
from analysis.reference import DRAWINGS, source
from analysis.report import (
    bad_case_classes,
    bad_cases,
    contact_sheet,
    contamination,
    controls,
    document_figures,
    figure_overview,
    figures_heldout,
    figures_lengths,
    figures_training,
    published_sentences,
    reasoning_tables,
    rewards_by_step,
    run_comparison,
    sample_browser,
    sample_pairs,
    seeds_tables,
    tables,
    turning_points_section,
)
from analysis.report.summary import main_result, recipe_result, summary
from analysis.results import RunResults, check_one_measurement
from analysis.statistics import published_tables
from analysis.statistics.accuracy_rows import CheckpointRow, run_rows
from analysis.statistics.training_seeds import by_recipe
from contracts import provenance, seeds
from system import background_fork, durable

# The table with the numbers of a figure.
NUMBERS = {
    "overview": "runs",
    "heldout_accuracy": "accuracy", "outcomes": "verdicts", "finished": "verdicts", "reasoning_patterns": "patterns",
    "right_reasons": "reasoning",
    rewards_by_step.NAME: rewards_by_step.NAME, turning_points.NAME: turning_points.NAME,
    contact_sheet.NAME: "svg_drawings",
}  # fmt: skip


def draw(
    runs: Sequence[RunResults],
    rows: Mapping[str, Sequence[CheckpointRow]],
    counts: pd.DataFrame,
    lists: Sequence[reasoning_patterns.PatternList],
    folder: Path,
    logs: Sequence[RunResults] = (),
) -> dict[str, Markup]:
    """Draw the figures for which there are results.

    Args:
        runs: those to draw.
        rows: their accuracy rows, by name.
        counts: what patterns.table counted, of all runs.
        lists: the keyword lists.
        folder: gets each figure as SVG and PNG.
        logs: imported training logs, drawn beside those of the runs.

    Returns:
        The SVG of each figure for the page, by name.
    """
    figure_style.set_style()
    found = set(counts.loc[counts["matches"] > 0, "pattern"]) | {item.name for item in lists if item.always}
    lists = [item for item in lists if item.name in found]
    figures = {
        "overview": figure_overview.overview(runs, rows),
        "heldout_accuracy": figures_heldout.heldout_accuracy(runs),
        "outcomes": figures_heldout.outcomes(runs),
        "finished": figures_lengths.finished(runs),
        "reasoning_patterns": figures_heldout.pattern_curves(runs, counts, lists),
    }
    if any(run.graded["completion_tokens"].notna().any() for run in runs):
        figures["length_distribution"] = figures_lengths.length_distribution(runs)
        if any(figures_lengths.thinks(run) for run in runs):
            figures["thinking"] = figures_lengths.thinking(runs)
    if turning := [recipe for recipe in by_recipe(runs) if turning_points.find(recipe)]:
        figures[turning_points.NAME] = turning_points_section.figure(turning)
    trained = [run for run in runs if run.trained]
    if logged := [*trained, *logs]:
        figures |= {
            "reward": figures_training.reward(logged),
            "response_length": figures_training.response_length(logged),
            "rates": figures_training.rates(logged),
        }
    if trained:
        figures["training_patterns"] = figures_lengths.training_patterns(trained, lists)
    if judged := [run for run in runs if figures_lengths.has_answer_lengths(run)]:
        figures["answer_lengths"] = figures_lengths.answer_lengths(judged)
    if several := [run for run in runs if rewards_by_step.has_several(run)]:
        figures[rewards_by_step.NAME] = rewards_by_step.figure(several)
    if sheets := contact_sheet.drawn(runs):
        figures[contact_sheet.NAME] = contact_sheet.figure(sheets)
    return {
        name: page.inline_svg(figure_style.save(figure, folder, name), name, page.caption(name))
        for name, figure in figures.items()
    }


def draw_reasoning(runs: Sequence[RunResults], counts: pd.DataFrame, folder: Path) -> dict[str, Markup]:
    """Draw right answers with right and with wrong reasoning, for the runs whose steps were checked.

    Args:
        runs: all of the page.
        counts: of reasoning.count, of all runs.
        folder: gets the figure as SVG and PNG.

    Returns:
        The SVG for the page, by name; nothing if no steps were checked.
    """
    inside = [run for run in runs if len(counts) and run.name in set(counts["run"])]
    if not inside:
        return {}
    figure = figures_heldout.right_reasons(inside, counts)
    name = "right_reasons"
    return {name: page.inline_svg(figure_style.save(figure, folder, name), name, page.caption(name))}


def report(runs: Sequence[RunResults], output: Path, title: str, scale: str, overlap: Path | None = None) -> Path:
    """Write tables/, figures/, samples/ and index.html.

    Args:
        runs: what load_results read, at least one of them with samples.
        output: folder to write to.
        title: of the page.
        scale: demo or full, shown on the page.
        overlap: the CSV table of tasks.overlap, if there is one.

    Returns:
        The path of the page.

    Raises:
        UserError: checkpoints of a run were measured in different ways.
    """
    titles = run_titles.titles([run.name for run in runs], scale)
    runs = [run if titles[run.name] == run.name else replace(run, title=titles[run.name]) for run in runs]
    logs, runs = [run for run in runs if not run.evaluated], [run for run in runs if run.evaluated]
    overlapping = tables.overlap_table(overlap) if overlap else None
    for run in runs:
        check_one_measurement(run)
    rows = {run.name: run_rows(run) for run in runs}
    facts = {run.name: run_comparison.run_facts(run, scale) for run in runs}
    lists = reasoning_patterns.load_lists()
    counted = background_fork.start(
        lambda: pd.concat([reasoning_patterns.table(run, lists) for run in runs], ignore_index=True)
    )
    bad_of = {run.name: bad_cases.count(run) for run in runs}
    counts = counted()
    browser = background_fork.start(lambda: sample_browser.write(runs, lists, title, output / "samples"))
    completed, verdicts = tables.completed_table(runs), tables.verdicts_table(runs)
    pattern_counts = tables.patterns_table(runs, counts, lists)
    every_row = [row for own in rows.values() for row in own]
    probed = contamination.table(runs, facts)
    completed_from = {run.name: contamination.column(run) for run in runs} if probed else {}
    side_by_side = run_comparison.runs_table(runs, rows, facts, completed_from)
    pairs = run_comparison.pairs_table(runs)
    beside = run_comparison.beside_published(runs, facts)
    bad = bad_cases.table(runs, pd.concat([counts for counts, _ in bad_of.values()], ignore_index=True))
    reasons = {run.name: reasoning.count(run) for run in runs}
    checked = pd.concat([counts for counts, _ in reasons.values()], ignore_index=True)
    others = pd.concat([reasoning.second_verifiers(run) for run in runs], ignore_index=True)
    right_reasons = reasoning_tables.table(runs, checked) if len(checked) else None
    second = reasoning_tables.second_table(runs, others) if len(others) else None
    printed = {name: published_tables.rows(name) for name in published_tables.table_names()}
    reproduced = list(dict.fromkeys(filter(fidelity.is_registered, (seeds.run_of(run.name) for run in runs))))
    sources = fidelity.table(reproduced) if reproduced else None
    claimed = claims.table(runs, scale)
    in_text, drawings = document_figures.figures_table(claimed), document_figures.drawings_table(runs)
    recipes = [recipe for recipe in by_recipe(runs) if recipe.has_several_seeds]
    controlled = controls.table(by_recipe(runs), facts)
    over_seeds, recipe_pairs = (
        (seeds_tables.seeds_table(recipes), seeds_tables.recipe_pairs_table(recipes)) if recipes else (None, None)
    )
    several = [run for run in runs if rewards_by_step.has_several(run)]
    by_reward = rewards_by_step.table(several) if several else None
    classes, turns = bad_case_classes.table(runs), turning_points_section.table(by_recipe(runs))
    made = [
        claimed, in_text, drawings, bad, tables.accuracy_table(every_row), tables.differences_table(every_row),
        completed, verdicts, by_reward, classes, turns, pattern_counts, side_by_side, probed, controlled, over_seeds,
        recipe_pairs, pairs, beside, overlapping, sources, right_reasons, second,
        *(tables.accuracy_table(own, f"accuracy-{name.replace('/', '-')}") for name, own in rows.items()),
        *(tables.accuracy_table(printed[name], f"published-{name}") for name in printed),
    ]  # fmt: skip
    for table in filter(None, made):
        table_texts.write(table, output / "tables")
    warnings = [one for run in [*runs, *logs] for one in diagnose(run)]
    figures = draw(runs, rows, counts, lists, output / "figures", logs)
    figures |= draw_reasoning(runs, checked, output / "figures")
    text = page.render(
        {
            "title": title,
            "scale": scale,
            "runs": runs,
            "logs": logs,
            "titles": titles,
            "made_at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "made_with": provenance.collect(),
            "summary": summary(runs, rows, facts, warnings, scale),
            "recipe_results": [recipe_result(recipe) for recipe in recipes],
            "contamination": page.plain(probed.shown) if probed else None,
            "controls": page.plain(controlled.shown) if controlled else None,
            "over_seeds": page.plain(over_seeds.shown) if over_seeds else None,
            "recipe_pairs": page.plain(recipe_pairs.shown) if recipe_pairs else None,
            "main_results": [main_result(run, rows[run.name]) for run in runs],
            "warnings": warnings,
            "figures": figures,
            "imported": [run.name for run in runs if not run.trained],
            "numbers": NUMBERS,
            "captions": {name: page.caption(name) for name in figures},
            "rewards_by_step": page.plain(by_reward.shown) if by_reward else None,
            "bad_cases": [(run.name, page.of_run(bad, run.name), bad_of[run.name][1]) for run in runs],
            "turning_points": page.plain(turns.shown) if turns else None,
            "turning_claims": claims.best_checkpoint_claims(runs),
            "bad_classes": page.plain(classes.shown) if classes else None,
            "bad_kinds": bad_cases.KINDS,
            "accuracy": list(rows.items()),
            "side_by_side": page.plain(side_by_side.shown),
            "run_pairs": page.plain(pairs.shown) if pairs else None,
            "unpaired": run_comparison.without_shared_benchmark(runs),
            "beside_published": page.plain(beside.shown) if beside else None,
            "published": list(printed.items()),
            "reproduces_table": any(known.reference for known in facts.values()),
            "published_shows": published_sentences.what_it_shows(printed),
            "published_source": source(),
            "deviations": [(run.name, listed) for run in runs if (listed := deviations(run))],
            "fidelity": page.plain(sources.shown) if sources else None,
            "document_figures": page.plain(in_text.shown),
            "drawings": page.plain(drawings.shown),
            "drawings_source": source(DRAWINGS),
            "claims": claimed.data.to_dict("records"),
            "claims_counted": claims.verdict_counts(claimed),
            "claim_sources": claims.sources(),
            "reasoning": [
                (run.name, page.of_run(right_reasons, run.name), reasons[run.name][1])
                for run in runs
                if right_reasons and len(reasons[run.name][0])
            ],
            "reasoning_kinds": reasoning.KINDS,
            "most_checked": reasoning.MOST_CHECKED,
            "second_verifiers": page.plain(second.shown) if second else None,
            "by_run": [(run.name, page.of_run(completed, run.name), page.of_run(verdicts, run.name)) for run in runs],
            "pattern_counts": [(run.name, page.of_run(pattern_counts, run.name)) for run in runs],
            "pattern_lists": lists,
            "overlap": page.plain(overlapping.shown) if overlapping else None,
            "pairs": [
                (run.name, [pair for name in run.benchmarks for pair in sample_pairs.choose(run, name)]) for run in runs
            ],
        }
    )
    index = output / "index.html"
    browser()
    for folder in ("tables", "samples", "figures"):
        durable.sync_tree(output / folder)
    durable.write_text(index, text)
    provenance.write(
        output,
        runs=[run.name for run in [*runs, *logs]],
        scale=scale,
        overlap_sha256=provenance.sha256(overlap) if overlap else None,  # it has no record of its own
    )
    return index
