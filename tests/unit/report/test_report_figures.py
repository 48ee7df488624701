"""What the figures show: smoothing, stages on one axis, and trouble in the log that must not stop them."""

from pathlib import Path

import pandas as pd
import pytest
from report_runs import graded_row, log_row, make_run

from analysis import figures_heldout, figures_training, patterns, style

GRADED = [graded_row(step, f"p{i}", 0, "correct") for step in (0, 10) for i in range(3)]


def test_running_mean_by_hand() -> None:
    values = pd.Series([1.0, 2.0, 6.0, None, 4.0])
    assert style.running_mean(values, 3).round(6).tolist()[:3] == [1.5, 3.0, 4.0]
    assert style.running_mean(values, 3)[3] == 5.0


def test_a_wide_gap_stays_a_gap() -> None:
    values = pd.Series([1.0, 1.0, None, None, None, 3.0, 3.0])
    assert style.running_mean(values, 3).isna().tolist() == [False, False, True, True, True, False, False]


@pytest.mark.parametrize(("length", "width"), [(1, 3), (29, 3), (30, 3), (50, 5), (100, 11), (1000, 101)])
def test_window_is_odd_and_about_a_tenth(length: int, width: int) -> None:
    assert style.window(length) == width


def test_stages_that_start_counting_again_follow_each_other() -> None:
    log = pd.DataFrame({"stage": [1, 1, 2, 2, 3], "step": [1, 2, 1, 2, 5]})
    positions, starts = figures_training.on_one_axis(log)
    assert positions.tolist() == [1, 2, 3, 4, 5]
    assert starts == [2, 4]


def test_runs_differ_by_more_than_colour() -> None:
    looks = style.looks(["a", "b", "c", "d"]).values()
    assert len({look.marker for look in looks}) == len({str(look.dash) for look in looks}) == 4


def test_points_drawn_are_the_logged_values() -> None:
    run = make_run(GRADED, [log_row(step, accuracy=step / 10) for step in range(1, 6)])
    figure = figures_training.rates([run])
    raw, smooth = figure.axes[0].lines[:2]
    assert raw.get_ydata().tolist() == pytest.approx([10, 20, 30, 40, 50])
    assert smooth.get_ydata().tolist() == pytest.approx([15, 20, 30, 40, 45])
    style.plt.close(figure)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), 0.0])
def test_columns_without_numbers_are_drawn_as_not_reported(value: float | None, tmp_path: Path) -> None:
    columns = ["reward_mean", "reward_std", "response_length_mean", "response_length_max", "truncated_rate", "accuracy"]
    run = make_run(GRADED, [log_row(step, **dict.fromkeys(columns, value)) for step in range(1, 4)])
    for draw in (figures_training.reward, figures_training.response_length, figures_training.rates):
        svg = style.save(draw([run]), tmp_path, draw.__name__)
        assert ("not reported" in svg) == (value != 0.0)


def test_a_run_with_only_its_base_model_and_strange_names_is_drawn(tmp_path: Path) -> None:
    run = make_run([row | {"benchmark": "$x_1$ & <b>"} for row in GRADED[:3]], [log_row(1)])
    lists = patterns.load_lists()
    for figure in (
        figures_heldout.heldout_accuracy([run]),
        figures_heldout.outcomes([run]),
        figures_heldout.reasoning_patterns([run], patterns.table(run, lists), lists),
    ):
        svg = style.save(figure, tmp_path, "figure")
    assert "$x_1$ &amp; &lt;b&gt;" in style.save(figures_heldout.heldout_accuracy([run]), tmp_path, "figure")
    assert svg.startswith("<?xml")
