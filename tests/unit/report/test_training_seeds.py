"""Several training seeds of a recipe in the report: sentences, tables, and each seed's line with the mean's band."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import FillBetweenPolyCollection
from report_runs import graded_row, log_row, make_run

from analysis.pages import figure_style
from analysis.pages.table_texts import Table
from analysis.report import training_curves
from analysis.report.build import report
from analysis.report.pair_verdicts import PagePairs
from analysis.report.report_data import RunFacts, run_facts
from analysis.report.sections import accuracy as accuracy_section
from analysis.report.sections import controls, opening
from analysis.report.sections import training_seeds as training_seeds_section
from analysis.report.summary import main_result, recipe_result, summary
from analysis.results import RunResults
from analysis.statistics import recipe_difference, training_seeds
from analysis.statistics.accuracy_rows import run_rows

BASE, LAST = 8, 10  # problems right before training, and the last step
RIGHT = {0: 14, 1: 15, 2: 16}  # per seed, problems right after it


def trained(name: str, right: int, benchmark: str = "sums", reward: float = 0.1, problems: int = 20) -> RunResults:
    """A run that solves the first problems: BASE of them before training, and `right` after it."""
    rows = [
        graded_row(
            step,
            f"p{i:02}",
            repeat,
            "correct" if i < solved else "wrong",
            run=name,
            benchmark=benchmark,
            completion=f"First, \\boxed{{2}} by {name}",
        )
        for step, solved in ((0, BASE), (LAST, right))
        for i in range(problems)
        for repeat in range(2)
    ]
    log = [log_row(step, run=name, reward_mean=reward * step) for step in range(1, 11)]
    run = replace(make_run(rows, log), name=name)
    return replace(run, scores=run.scores.assign(run=name))


def seeds_of(recipe: str = "recipe/run", right: dict[int, int] | None = None, **more: object) -> list[RunResults]:
    return [trained(f"{recipe}/seed-{s}", n, reward=0.1 + s / 100, **more) for s, n in (right or RIGHT).items()]  # type: ignore[arg-type]


@pytest.mark.slow
def test_runs_of_one_recipe_are_one_and_others_are_not() -> None:
    runs = [*seeds_of(), trained("recipe/other/seed-0", 9)]
    assert [len(recipe.runs) for recipe in training_seeds.by_recipe(runs)] == [3, 1]
    first, second = training_seeds.by_recipe(runs)
    assert (first.display_name, second.display_name) == ("recipe/run, 3 seeds", "recipe/other/seed-0")
    titled = [replace(run, title=f"run demo, GRPO (trl), seed {i}") for i, run in enumerate(runs[:3])]
    assert training_seeds.by_recipe(titled)[0].display_name == "run demo, GRPO (trl), 3 seeds"


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.usefixtures("undrawn")
def test_copies_and_other_last_steps_are_no_seeds_of_a_recipe(tmp_path: Path) -> None:
    runs = seeds_of()
    copy = replace(runs[0], name="recipe/run/seed-7")
    assert training_seeds.obstacles(runs) == [] and "completions" in training_seeds.obstacle([*runs, copy])
    assert not any(recipe.has_several_seeds for recipe in training_seeds.by_recipe([*runs, copy]))
    early = replace(runs[0], scores=runs[0].scores[runs[0].scores["step"] < LAST])
    assert "step" in training_seeds.obstacle([early, *runs[1:]])
    assert not training_seeds.copies([early, *runs[1:]])
    report([*runs, copy], tmp_path, "A copy", "demo")
    assert "so they are one training" in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize("other", [{"benchmark": "words"}, {"problems": 19}])
def test_seeds_that_were_measured_in_another_way_are_not_averaged(other: dict[str, object]) -> None:
    odd = seeds_of(right={1: 14}, **other)
    assert not any(recipe.has_several_seeds for recipe in training_seeds.by_recipe([*seeds_of(right={0: 14}), *odd]))


def test_the_interval_over_seeds_by_hand() -> None:
    # All problems alike, so that only seeds differ: means .7, .75, .8, standard error .05 / √3, t(2, .975) = 4.3027
    values = np.repeat([[0.7], [0.75], [0.8]], 40, axis=1)
    interval = recipe_difference.mean_over_seeds([values])
    assert interval == pytest.approx((0.75, 0.75 - 4.302653 * 0.028868, 0.75 + 4.302653 * 0.028868), abs=1e-5)
    # All seeds alike, so that only problems differ: the interval of a mean over 40 problems, t(39, .975) = 2.0227
    solved = np.tile([0.0, 1.0], 20)
    interval = recipe_difference.mean_over_seeds([np.stack([solved, solved])])
    assert interval.high == pytest.approx(0.5 + 2.022691 * 0.5 * (40 / 39) ** 0.5 / 40**0.5, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("of_seeds", "of_problems"), [(0.0, 0.1), (0.05, 0.1), (0.1, 0.02)])
def test_the_interval_over_seeds_covers_new_seeds_and_new_problems(of_seeds: float, of_problems: float) -> None:
    rng, covered, trials = np.random.default_rng(1), 0, 1000
    for _ in range(trials):
        values = 0.5 + rng.normal(0, of_seeds, (4, 1)) + rng.normal(0, of_problems, 60) + rng.normal(0, 0.2, (4, 60))
        low, high = recipe_difference.mean_over_seeds([values])[1:]
        covered += low <= 0.5 <= high
    assert covered / trials > 0.93  # 95 % less three standard errors


def test_a_sentence_about_a_recipe_needs_seeds_and_one_about_a_checkpoint_says_so() -> None:
    runs = seeds_of()
    result = recipe_result(training_seeds.by_recipe(runs)[0])
    assert result.change == "rose"
    text = result.sentence.replace("\N{NO-BREAK SPACE}", " ")
    assert text.startswith("Over 3 training seeds, held-out accuracy rose by 35.0 points (95 % interval for new seeds")
    assert "from 40.0 % for the base model to 75.0 %" in text
    assert "The seeds end at 70.0 to 80.0 %, with a standard deviation of 5.0 points." in text
    assert "this checkpoint" in main_result(runs[0], run_rows(runs[0])).sentence


@pytest.mark.parametrize(("right", "sentence"), [(RIGHT, "in 1 of 1 recipe"), ({0: 14}, "about its checkpoint, not")])
def test_the_opening_speaks_of_recipes_only_with_seeds(right: dict[int, int], sentence: str) -> None:
    runs = seeds_of(right=right)
    rows, facts = {run.name: run_rows(run) for run in runs}, {run.name: RunFacts("trl") for run in runs}
    assert sentence in summary(training_seeds.by_recipe(runs), rows, facts, [], "demo")[1]


def test_seeds_that_differ_more_than_they_gained_do_not_make_a_recipe_better() -> None:
    # Each checkpoint alone differs beyond noise from the base model or from the other; the recipe does not.
    runs = seeds_of(right={0: 19, 1: 4})
    assert {main_result(run, run_rows(run)).change for run in runs} >= {"rose"}
    assert recipe_result(training_seeds.by_recipe(runs)[0]).change == "cannot tell"


def test_the_table_has_the_spread_over_seeds_by_hand() -> None:
    table = training_seeds_section.seeds_table(training_seeds.by_recipe(seeds_of()))
    last = table.data.iloc[-1]
    assert (last["step"], last["seeds"], last["recipe"]) == (LAST, 3, "recipe/run")
    assert (last["mean"], last["deviation"]) == pytest.approx((0.75, 0.05))
    assert (last["lowest"], last["highest"], last["gain"]) == pytest.approx((0.7, 0.8, 0.35))
    assert table.data.iloc[0]["deviation"] == pytest.approx(0) and pd.isna(table.data.iloc[0]["gain"])


def pairs_of(runs: list[RunResults]) -> Table | None:
    return training_seeds_section.recipe_pairs_table(PagePairs.compared(runs, training_seeds.by_recipe(runs)))


@pytest.mark.slow
def test_recipes_are_compared_over_seeds_where_checkpoints_alone_would_differ() -> None:
    wide, narrow = seeds_of("recipe/wide", {0: 19, 1: 10}), seeds_of("recipe/narrow", {0: 12, 1: 12})
    table = training_seeds_section.recipe_pairs_table(
        PagePairs.compared([], training_seeds.by_recipe([*wide, *narrow]))
    )
    assert table is not None and table.data["verdict"].tolist() == ["cannot tell"]
    better = seeds_of("recipe/better", {0: 60, 1: 60, 2: 60}, problems=60)
    base = seeds_of("recipe/base", {0: 10, 1: 10, 2: 11}, problems=60)
    table = training_seeds_section.recipe_pairs_table(
        PagePairs.compared([], training_seeds.by_recipe([*base, *better]))
    )
    assert table is not None and table.data["verdict"].tolist() == ["the second recipe is better"]


@pytest.mark.slow
def test_one_correction_goes_over_the_runs_and_recipes_of_a_page() -> None:
    base, better = seeds_of("recipe/base", {0: 10, 1: 10, 2: 11}), seeds_of("recipe/better", {0: 19, 1: 18, 2: 19})
    alone = [
        replace(run, name=f"recipe/alone-{number}/seed-0")
        for number, run in enumerate(seeds_of("recipe/x", {0: 10})[:1] * 3)
    ]
    recipes = training_seeds.by_recipe([*base, *better])
    without, together = (
        PagePairs.compared([*base, *better], recipes),
        PagePairs.compared([*base, *better, *alone], recipes),
    )
    assert not without.runs and without.tests == 1  # checkpoints of repeated recipes are compared as recipes alone
    assert together.tests == 1 + 3 + 3 * 6
    (one,), (other,) = without.recipes, together.recipes
    assert one.p_adjusted == one.p_value == other.p_value < other.p_adjusted


def bands(figure: object) -> list[FillBetweenPolyCollection]:
    axes = figure.axes[0]  # type: ignore[attr-defined]
    return [band for band in axes.collections if isinstance(band, FillBetweenPolyCollection)]


def test_figures_draw_every_seed_and_the_band_of_the_mean() -> None:
    runs = [*seeds_of(), trained("recipe/other/seed-0", 9)]
    figure = training_curves.plot_reward(training_seeds.by_recipe(runs))
    lines, (band,) = figure.axes[0].lines, bands(figure)
    ends = [line.get_ydata()[5] for line in lines[:4]]  # the reward is 0.1, 0.11, 0.12 × step; the mean is last
    assert ends == pytest.approx([0.6, 0.66, 0.72, 0.66])
    # mean .66, deviation .06: half of the band is 4.3027 × .06 / √3
    edge = band.get_paths()[0].vertices
    assert edge[edge[:, 0] == 6].max(axis=0)[1] == pytest.approx(0.66 + 4.302653 * 0.06 / 3**0.5, abs=1e-4)
    figure_style.plt.close(figure)
    figure = accuracy_section.plot_heldout_accuracy(training_seeds.by_recipe(runs))
    assert [line.get_ydata()[-1] for line in figure.axes[0].lines[:4]] == pytest.approx([70, 75, 80, 75])
    assert len(bands(figure)) == 1 and len(figure.axes[0].containers) == 1  # the other run has bars
    assert figure.axes[0].get_ylim()[1] <= 106
    figure_style.plt.close(figure)


def test_the_overview_has_one_line_for_a_recipe() -> None:
    runs = seeds_of()
    figure = opening.plot_overview(training_seeds.by_recipe(runs), {run.name: run_rows(run) for run in runs})
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["recipe/run, 3 seeds", "+35.0 ▲"]
    figure_style.plt.close(figure)


def test_a_title_of_several_lines_stays_within_the_overview() -> None:
    runs = [replace(run, title=f"{'a title of many words ' * 7}(trl)") for run in [trained("a/b/seed-0", 9)]]
    runs.append(trained("recipe/other/seed-0", 9))
    figure = opening.plot_overview(training_seeds.by_recipe(runs), {run.name: run_rows(run) for run in runs})
    figure.canvas.draw()
    frame, texts = figure.bbox, figure.axes[0].texts
    boxes = [text.get_window_extent() for text in texts]
    assert texts[0].get_text().count("\n") == 2
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 and box.y1 <= frame.y1 for box in boxes)
    assert not any(one.overlaps(other) for number, one in enumerate(boxes) for other in boxes[:number])
    figure_style.plt.close(figure)


BESIDE = "openr1/qwen2.5-math-7b"


def controlled(recipe: list[RunResults], control: list[RunResults]) -> dict[str, object]:
    runs = [*recipe, *control]
    facts = {run.name: run_facts(run, "demo") for run in runs}
    table = controls.controls_table(training_seeds.by_recipe(runs), facts)
    assert table is not None
    return dict(table.data.iloc[0])


def test_a_recipe_is_read_beside_its_control() -> None:
    better = seeds_of(BESIDE, {0: 58, 1: 59, 2: 60}, problems=60)
    row = controlled(better, seeds_of(f"{BESIDE}-random", {0: 10, 1: 11, 2: 12}, problems=60))
    assert (row["recipe"], row["control"], row["about"]) == (BESIDE, "random", "recipe")
    assert row["verdict"] == "the recipe is better than the control"
    assert (row["recipe_gain"], row["control_gain"], row["difference"]) == pytest.approx((51 / 60, 3 / 60, 0.8))


def test_a_control_that_gains_as_much_leaves_the_recipe_unproven() -> None:
    row = controlled(seeds_of(BESIDE), seeds_of(f"{BESIDE}-format"))
    assert (row["recipe_gain"], row["control_gain"]) == pytest.approx((0.35, 0.35))
    assert row["verdict"] == "cannot tell"


@pytest.mark.slow
def test_one_seed_beside_its_control_is_about_checkpoints() -> None:
    row = controlled(seeds_of(BESIDE, {0: 60}, problems=60), seeds_of(f"{BESIDE}-opposite", {0: 8, 1: 9}, problems=60))
    assert (row["about"], row["verdict"]) == ("checkpoint", "the checkpoint is better than the control")


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_a_report_of_single_seeds_has_the_controls_and_no_table_over_seeds(tmp_path: Path) -> None:
    runs = [*seeds_of(BESIDE, {0: 14}), *seeds_of(f"{BESIDE}-random", {0: 9})]
    page = report(runs, tmp_path / "report", "Beside a control", "demo").read_text(encoding="utf-8")
    assert "random reward" in page and "openr1-random demo, GRPO (trl)" in page
    tables = tmp_path / "report" / "tables"
    assert (tables / "controls.csv").is_file() and not (tables / "seeds.csv").exists() and "headline recipe" not in page
