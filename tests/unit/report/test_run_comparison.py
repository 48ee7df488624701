"""Runs side by side: the best checkpoint chosen without bias, pairs, and the published figures beside ours."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from report_runs import graded_row, make_run
from synthetic_results import write_run

from analysis.load_results import load_results
from analysis.report import report_data
from analysis.report.pair_verdicts import PagePairs
from analysis.report.report_data import RunFacts
from analysis.report.sections import best_checkpoints, run_pairs
from analysis.report.sections import published_tables as published_tables_section
from analysis.results import RunResults
from analysis.statistics import published_tables
from analysis.statistics.accuracy_rows import run_rows
from contracts import tables


def coin_flips(checkpoints: int, problems: int, seed: int) -> RunResults:
    """Checkpoints that are all equally good (one half), so that the best one is only the luckiest."""
    rng = np.random.default_rng(seed)
    return make_run(
        [
            graded_row(10 * step, f"p{i}", 0, "correct" if rng.random() < 0.5 else "wrong")
            for step in range(checkpoints)
            for i in range(problems)
        ]
    )


@pytest.mark.slow
def test_best_chosen_on_other_problems_has_no_bias() -> None:
    chosen, biased = [], []
    for seed in range(12):
        run = coin_flips(12, 40, seed)
        apart = best_checkpoints.best_held_out(run)
        assert apart is not None and apart.low <= apart.value <= apart.high
        chosen.append(apart.value)
        biased.append(max(cell["avg_at_k"] for _, cell in run.scores.iterrows()))
    assert np.mean(biased) > 0.58
    assert np.mean(chosen) == pytest.approx(0.5, abs=0.06)


def test_best_apart_needs_problems_in_both_halves() -> None:
    assert best_checkpoints.best_held_out(make_run([graded_row(0, "p", 0, "correct")])) is None


def test_pairs_are_compared_only_on_the_same_problems_and_protocol() -> None:
    rows = [graded_row(0, f"p{i}", 0, "correct" if i < 10 else "wrong") for i in range(20)]
    better = [graded_row(0, f"p{i}", 0, "correct") for i in range(20)]
    first = make_run(rows)
    table = run_pairs.pairs_table(PagePairs.compared([first, replace(make_run(better), name="other")]))
    assert table is not None and table.display["verdict"].tolist() == ["the second checkpoint is better"]
    assert table.data["value"].tolist() == [0.5]
    for other, why in (
        ([row | {"protocol": "q"} for row in better], "different protocol: p and q"),
        ([row | {"grader": "h"} for row in better], "different grader: g and h"),
        ([row | {"prompt": "another"} for row in better], "different prompts on 20 problems"),
        (rows[:1], "different problems: the baseline has 20, the checkpoint 1, and 1 are on both sides"),
    ):
        table = run_pairs.pairs_table(PagePairs.compared([first, make_run(other)]))
        assert table is not None and "value" not in table.data and table.data["not_compared"].tolist() == [why]
    elsewhere = make_run([row | {"benchmark": "words"} for row in rows])
    assert run_pairs.pairs_table(PagePairs.compared([first, elsewhere])) is None
    assert run_pairs.without_shared_benchmark([first, elsewhere, first]) == 2


@pytest.mark.slow
def test_ours_beside_the_published_figures_with_tolerance(tmp_path: Path) -> None:
    name = "openr1/qwen2.5-math-7b/seed-0"
    write_run(tmp_path, name, 0.6, benchmarks=("aime24", "words"), steps=(0, 100), problems=30, repeats=1)
    run = load_results(tmp_path, name)
    facts = {name: report_data.run_facts(run, "full")}
    assert (facts[name].framework, facts[name].reference) == ("trl", "3.2.2(1)")
    table = published_tables_section.beside_published([run], facts)
    assert table is not None and table.data["benchmark"].tolist() == ["aime24"] * 2
    assert table.data["published"].tolist() == [0.133, 0.267]
    ours, theirs = run.score(100, "aime24"), published_tables.estimate(0.267, 30)
    low = ours["avg_at_k"] - 0.267 - np.hypot(ours["avg_at_k"] - ours["ci_low"], theirs.high - 0.267)
    assert table.data.loc[1, "low"] == pytest.approx(low)
    assert table.data["within"].tolist() == [
        bool(low <= 0 <= high) for low, high in zip(table.data["low"], table.data["high"], strict=True)
    ]
    assert published_tables_section.beside_published([run], {name: RunFacts()}) is None
    texts = best_checkpoints.runs_table([run], {name: run_rows(run)}, facts).display.iloc[0]
    assert texts["framework"] == "trl, grpo" and texts["best, chosen on the same problems (%)"].endswith("†")


def regraded(folder: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    """Scores of the same samples by a stricter grader, as `snakemake grade --config grader=strict` leaves them."""
    scores = change(tables.read(folder / "scores.parquet", tables.SCORE).to_pandas())
    path = folder / "regraded/strict+protocol/scores.parquet"
    tables.write(pa.Table.from_pandas(scores, tables.SCORE, preserve_index=False), tables.SCORE, path)


@pytest.mark.slow
def test_the_range_over_graders_is_beside_the_published_figures(tmp_path: Path) -> None:
    name = "openr1/qwen2.5-math-7b/seed-0"
    folder = write_run(tmp_path, name, 1.6, benchmarks=("aime24",), steps=(0, 100), problems=30, repeats=1)
    regraded(
        folder,
        lambda scores: scores.assign(avg_at_k=scores["avg_at_k"] - scores["avg_at_k"].where(scores["step"] > 0, 0)),
    )
    run = load_results(tmp_path, name)
    table = published_tables_section.beside_published([run], {name: report_data.run_facts(run, "full")})
    assert table is not None
    base, trained = table.data.to_dict("records")
    assert base["graders_low"] == base["graders_high"] == base["ours"]
    assert (trained["graders_low"], trained["graders_high"]) == (0, trained["ours"])
    assert (
        not trained["within"] and trained["within_by_grader"]
    )  # 100 % by one grader, 0 % by another, 26.7 % published
    assert table.display.iloc[1]["verdict"] == "depends on the grader"
    assert table.display.iloc[1]["ours over graders (%)"].startswith("0.0–")


def test_scores_of_other_samples_by_another_grader_do_not_count(tmp_path: Path) -> None:
    name = "openr1/qwen2.5-math-7b/seed-0"
    folder = write_run(tmp_path, name, 0.6, benchmarks=("aime24",), steps=(0, 100), problems=30, repeats=1)
    assert load_results(tmp_path, name).graders_band(100, "aime24") is None
    regraded(folder, lambda scores: scores.assign(completion_tokens_mean=scores["completion_tokens_mean"] + 1))
    run = load_results(tmp_path, name)
    assert run.graders_band(100, "aime24") is None
    table = published_tables_section.beside_published([run], {name: report_data.run_facts(run, "full")})
    assert table is not None and set(table.display["ours over graders (%)"]) == {"–"}


def test_imported_generations_have_no_base_model() -> None:
    run = replace(make_run([graded_row(0, f"p{i}", 0, "wrong") for i in range(8)], []), name="imported/mine")
    table = best_checkpoints.runs_table([run], {run.name: run_rows(run)}, {run.name: RunFacts()})
    texts = table.display.iloc[0]
    assert texts["base model (%)"] == "–" and texts["final (%)"].endswith("(as imported)")
    assert "base" not in table.data and table.data["final"].tolist() == [0.0]
