"""Clusters of problems: parts of one exercise are one observation, in every interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.compare_checkpoints import paired_answers
from analysis.compare_checkpoints.paired_answers import PairedAnswers
from analysis.compare_recipes import training_runs
from analysis.compare_recipes.training_runs import GradedRun
from analysis.results import RunResults
from analysis.statistics import checkpoint_difference, training_seeds
from analysis.statistics.training_seeds import Recipe
from eval import statistics
from eval.score import score_row
from eval.statistics import clusters
from tasks.problems import Problem, to_table, with_same_beginning
from tests.unit.report.report_runs import graded_row, make_run


def test_questions_that_begin_alike_are_a_cluster() -> None:
    texts = ["Preamble: a star.  Find its mass.", "Preamble: a star. Find its age.", "What is 1 + 1?"]
    problems = with_same_beginning([Problem(str(n), "math", text, "1", {}) for n, text in enumerate(texts)], 16)
    assert to_table(problems)["cluster"].to_pylist() == ["Preamble: a star"] * 2 + [None]


def test_values_of_clusters_have_the_mean_of_the_problems() -> None:
    values, codes = np.array([1.0, 0.0, 0.5, 1.0]), np.array([0, 0, 1, 2])
    assert clusters.linearised(values, codes).mean() == pytest.approx(values.mean())
    assert clusters.linearised(values, None).tolist() == values.tolist()
    assert clusters.sums(np.array([True, True, False]), np.array([0, 0, 1])).tolist() == [2, 0]
    assert clusters.of_problems(["a", "b"], [None, "a"]) is None
    assert clusters.of_problems(["a", "b", "c"], ["x", None, "x"]).tolist() == [0, 1, 0]  # type: ignore[union-attr]


def run_with(shared: int, seed: int = 0, better: bool = False) -> RunResults:
    """Sixty problems, so many with one text and one outcome; half of the texts are solved, at step 1 some more."""
    rows = []
    for step in (0, 1):
        for problem in range(60):
            text = problem // shared
            right = text % 2 == 0 or ((step == 1 or better) and text % 5 == 0) or (seed == 1 and text % 7 == 0)
            verdict = "correct" if right else "wrong"
            rows.append(graded_row(step, f"p{problem:02d}", 0, verdict, cluster=f"text {text}", run=NAME))
    return replace(make_run(rows), name=f"{NAME}/seed-{seed}")


NAME = "recipe/run"


def test_every_interval_is_wider_where_problems_share_a_text() -> None:
    alone, together = run_with(1), run_with(5)
    for measure in (
        lambda run: statistics.Estimate(*run.score(0, "sums")[["avg_at_k", "ci_low", "ci_high"]]),
        lambda run: checkpoint_difference.difference(run, 1, "sums"),
        lambda run: checkpoint_difference.between_runs(run, replace(run_of(run, better=True), name="other"), ["sums"]),
        lambda run: training_seeds.gain(Recipe([run, run_of(run, seed=1)]), 1, ["sums"]),
    ):
        narrow, wide = measure(alone), measure(together)
        assert wide.high - wide.low > 1.3 * (narrow.high - narrow.low)


def run_of(run: RunResults, seed: int = 0, better: bool = False) -> RunResults:
    """Another run whose problems share as many texts."""
    return run_with(60 // run.graded["cluster"].nunique(), seed, better)


def test_a_score_without_clusters_is_as_before() -> None:
    rows = pd.DataFrame([graded_row(0, f"p{n}", 0, "correct" if n % 3 else "wrong") for n in range(30)])
    assert score_row(rows) == score_row(rows.assign(cluster=None))


def test_recipes_are_compared_by_cluster() -> None:
    table = run_with(5).rows(0, "sums").reset_index(drop=True)
    run = GradedRun([table], np.zeros(60, dtype=np.int64))
    (answers,) = training_runs.clustered_answers([{"sums": [run]}])
    assert answers["sums"][0].shape == (12, 1) and answers["sums"][0].mean() == pytest.approx(0.5)


def test_the_gate_changes_the_signs_of_whole_clusters() -> None:
    """Twelve gained problems of three texts are three gained texts, and no verdict; of twelve texts they are."""
    first, second = np.zeros((60, 1), dtype=bool), (np.arange(60) < 12)[:, None]
    none = np.zeros_like(first)
    texts = np.concatenate([np.arange(12) // 4, np.arange(48) + 3]).astype(np.int64)
    alone, together = (PairedAnswers(first, second, none, none, codes) for codes in (None, texts))
    assert paired_answers.p_value([alone], 0.0) < 0.001
    assert paired_answers.p_value([together], 0.0) >= 0.25
    assert together.beyond(together.counts, 0.0).mean() == pytest.approx(0.2)
    assert paired_answers.p_value([together, alone], 0.0) > paired_answers.p_value([alone, alone], 0.0)


@pytest.mark.slow
def test_the_interval_covers_where_problems_share_texts() -> None:
    """Half of the problems in clusters of three that succeed or fail together, as in Minerva but stronger."""
    random, covered, naive, trials = np.random.default_rng(0), 0, 0, 2000
    codes = np.concatenate([np.arange(120), np.repeat(np.arange(120, 160), 3)])
    for _ in range(trials):
        level = random.random(160) < 0.4
        values = level[codes].astype(float)
        for shared in (codes, None):
            estimate = statistics.mean_over_problems(clusters.linearised(values, shared))
            hit = estimate.low <= 0.4 <= estimate.high
            covered, naive = covered + hit * (shared is not None), naive + hit * (shared is None)
    assert 0.935 < covered / trials < 0.97 and naive / trials < 0.92
