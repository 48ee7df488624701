"""Where a training turns: by hand, how often the truly best checkpoint is among those that may be, and on the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_runs import graded_row, log_row, make_run

from analysis.claims import table as claims
from analysis.claims.verdicts import CANNOT_TELL, CONTRADICTED, SUPPORTED
from analysis.measures import turning_points
from analysis.measures.turning_points import AT_THE_END, FALLS, OVER_OPTIMISED, RIGHT, UNFINISHED, WRONG
from analysis.report import build
from analysis.report.sections import lengths
from analysis.report.sections import turning_points as turning_points_section
from analysis.results import RunResults
from analysis.statistics.training_seeds import Recipe, by_recipe

PROBLEMS = 60
NAME = "game24/grpo-running"


def trained(
    right: dict[int, int], cut: dict[int, int] | None = None, seed: int = 0, reward: float = 0.02
) -> RunResults:
    """A run that solves the first problems of each step; as many of the last ones are cut off, and others are wrong."""
    cut, name = cut or {}, f"{NAME}/seed-{seed}"
    rows = []
    for step, solved in right.items():
        for problem in range(PROBLEMS):
            i = (problem + seed) % PROBLEMS  # another seed solves others
            verdict = "correct" if i < solved else "truncated" if i >= PROBLEMS - cut.get(step, 0) else "wrong"
            rows.append(graded_row(step, f"p{problem:02}", 0, verdict, run=name, completion_tokens=10 + i))
    log = [log_row(step, run=name, reward_mean=reward * step + 0.01 * (step % 3)) for step in range(1, max(right) + 1)]
    run = replace(make_run(rows, log), name=name)
    return replace(run, scores=run.scores.assign(run=name))


RISE_AND_FALL = {0: 10, 10: 30, 20: 40, 30: 50, 40: 35, 50: 20}
CUT = {0: 20, 10: 10, 20: 5, 30: 5, 40: 10, 50: 20}


def test_rise_and_fall() -> None:
    turn = turning_points.find(Recipe([trained(RISE_AND_FALL, CUT)]))
    assert turn and (turn.best, turn.first, turn.end) == (30, 30, 30) and turn.verdict == OVER_OPTIMISED
    assert {part: change.value for part, change in turn.changes.items()} == pytest.approx(
        {RIGHT: -0.5, UNFINISHED: 0.25, WRONG: 0.25}
    )
    assert turn.reward and turn.reward.value == pytest.approx(0.4, abs=0.01)
    without = turning_points.find(Recipe([trained(RISE_AND_FALL, CUT, reward=0.0)]))
    assert without and without.verdict == FALLS


@pytest.mark.parametrize(
    ("right", "interval", "verdict"),
    [
        ({0: 10, 10: 30, 20: 50}, (20, 20, 20), AT_THE_END),
        ({0: 10, 10: 31, 20: 30, 30: 30}, (10, 10, 30), turning_points.CANNOT_TELL),
        ({0: 30, 10: 30, 20: 30}, (0, 0, 20), turning_points.CANNOT_TELL),
    ],
)
def test_without_a_fall(right: dict[int, int], interval: tuple[int, int, int], verdict: str) -> None:
    turn = turning_points.find(Recipe([trained(right)]))
    assert turn and (turn.best, turn.first, turn.end, turn.verdict) == (*interval, verdict)


def test_two_checkpoints_have_no_turning_point() -> None:
    assert turning_points.find(Recipe([trained({0: 10, 10: 20})])) is None
    assert turning_points_section.turning_points_table([Recipe([trained({0: 10, 10: 20})])]) is None


def test_several_seeds_are_one_recipe() -> None:
    runs = [trained({step: n + seed for step, n in RISE_AND_FALL.items()}, CUT, seed) for seed in range(3)]
    (recipe,) = by_recipe(runs)
    table = turning_points_section.turning_points_table([recipe])
    assert table and list(table.data["seeds"]) == [3] and list(table.data["best"]) == [30]
    assert table.display.iloc[0]["verdict"] == OVER_OPTIMISED
    assert table.display.iloc[0]["95 % interval"] == "step 30"


def test_where_it_is_not_known_how_completions_ended_only_right_ones_change() -> None:
    run = trained(RISE_AND_FALL)
    turn = turning_points.find(Recipe([replace(run, scores=run.scores.assign(truncated_rate=None))]))
    assert turn and list(turn.changes) == [RIGHT]


def _random_run(rng: np.random.Generator, skill: dict[int, float]) -> RunResults:
    ease = rng.normal(0, 0.15, PROBLEMS)
    rows = [
        graded_row(step, f"p{i:02}", repeat, "correct" if rng.random() < share + ease[i] else "wrong")
        for step, share in skill.items()
        for i in range(PROBLEMS)
        for repeat in range(2)
    ]
    return make_run(rows)


@pytest.mark.long
@pytest.mark.slow
def test_the_best_checkpoint_is_among_those_that_may_be() -> None:
    rng, covered, trials = np.random.default_rng(0), 0, 200
    for _ in range(trials):
        turn = turning_points.find(Recipe([_random_run(rng, {0: 0.3, 10: 0.5, 20: 0.52, 30: 0.5})]))
        covered += turn is not None and turn.first <= 20 <= turn.end
    assert covered / trials > 0.93  # 95 % less a standard error


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        (RISE_AND_FALL, SUPPORTED),
        ({0: 10, 10: 55, 20: 40, 30: 30, 40: 30, 50: 20}, CONTRADICTED),  # best at step 10
        ({0: 10, 10: 20, 20: 29, 30: 30, 40: 29, 50: 28}, CANNOT_TELL),
    ],
)
def test_the_documents_claim_on_runs_of_any_scale(right: dict[int, int], expected: str) -> None:
    ((claim, source, finding),) = claims.best_checkpoint_claims([trained(right, seed=seed) for seed in (0, 1, 2)])
    assert "30" in claim and "24 points" in source and finding.verdict == expected
    assert not claims.best_checkpoint_claims([])


def test_completions_that_were_cut_off_have_the_last_bin() -> None:
    shares, edges = lengths.held_out_lengths(trained(RISE_AND_FALL, CUT))
    assert len(edges) == lengths.BINS + 2 and list(shares) == list(RISE_AND_FALL)
    assert [own[-1] for own in shares.values()] == pytest.approx([100 * CUT[step] / PROBLEMS for step in RISE_AND_FALL])
    assert all(own.sum() == pytest.approx(100) for own in shares.values())
    shares, edges = lengths.held_out_lengths(trained(RISE_AND_FALL))
    assert len(edges) == lengths.BINS + 1 and all(len(own) == lengths.BINS for own in shares.values())


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_page_has_the_figure_the_table_and_the_claim(tmp_path: Path) -> None:
    page = build.report([trained(RISE_AND_FALL, CUT)], tmp_path, "t", "demo").read_text()
    assert 'id="figure-turning_points"' in page and OVER_OPTIMISED in page and "cut off" in page
    assert f"<b>{SUPPORTED}</b>" in (tmp_path / "claims.html").read_text()
    assert (tmp_path / "tables" / "turning_points.csv").is_file()
