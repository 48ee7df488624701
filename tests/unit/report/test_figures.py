"""What the figures show: smoothing, stages on one axis, and trouble in the log that must not stop them."""

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb
from report_runs import graded_row, log_row, make_run

from analysis.measures import reasoning_patterns
from analysis.pages import figure_curves, figure_style, page
from analysis.report import training_curves
from analysis.report.sections import accuracy as accuracy_section
from analysis.report.sections import keyword_patterns, lengths
from analysis.report.sections import outcomes as outcomes_section
from analysis.statistics.training_seeds import Recipe, by_recipe

GRADED = [graded_row(step, f"p{i}", 0, "correct") for step in (0, 10) for i in range(3)]


def test_running_mean_by_hand() -> None:
    values = pd.Series([1.0, 2.0, 6.0, None, 4.0])
    assert figure_style.running_mean(values, 3).round(6).tolist()[:3] == [1.5, 3.0, 4.0]
    assert figure_style.running_mean(values, 3)[3] == 5.0


def test_a_wide_gap_stays_a_gap() -> None:
    values = pd.Series([1.0, 1.0, None, None, None, 3.0, 3.0])
    assert figure_style.running_mean(values, 3).isna().tolist() == [False, False, True, True, True, False, False]


@pytest.mark.parametrize(("length", "width"), [(1, 3), (29, 3), (30, 3), (50, 5), (100, 11), (1000, 101)])
def test_window_is_odd_and_about_a_tenth(length: int, width: int) -> None:
    assert figure_style.window(length) == width


def test_stages_that_start_counting_again_follow_each_other() -> None:
    log = pd.DataFrame({"stage": [1, 1, 2, 2, 3], "step": [1, 2, 1, 2, 5]})
    positions, starts = figure_curves.on_one_axis(log)
    assert positions.tolist() == [1, 2, 3, 4, 5]
    assert starts == [2, 4]


def test_runs_differ_by_more_than_colour() -> None:
    looks = list(figure_style.run_styles([str(i) for i in range(32)]).values())
    assert len({look.colour for look in looks[:12]}) == len({look.marker for look in looks[:12]}) == 12
    assert len({str(look.dash) for look in looks[:4]}) == 4
    assert len({(look.colour, look.marker) for look in looks}) == len({(k.colour, str(k.dash)) for k in looks}) == 32


# What each kind of colour-blindness makes of linear RGB (Machado, Oliveira and Fernandes, IEEE TVCG 15:1291, 2009).
SEEN = {
    "all colours": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def cielab(colour: Any, seen: list[list[float]]) -> np.ndarray:
    """L*, a*, b* of an sRGB colour as it is seen (D65)."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    primaries = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = primaries @ np.clip(np.array(seen) @ linear, 0, 1) / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


# hue-rotate(180deg) of the Filter Effects Module (W3C), on sRGB values.
HUES = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])


def on_dark(colour: str) -> tuple[float, ...]:
    """A colour as the filter of report.css shows it on the dark page."""
    amount = float(re.findall(r"invert\(([.\d]+)\) hue-rotate\(180deg\)", page.css())[0])
    return tuple(np.clip(HUES @ (amount - (2 * amount - 1) * np.array(to_rgb(colour))), 0, 1))


@pytest.mark.parametrize("paper", [to_rgb, on_dark], ids=["on white", "on dark"])
@pytest.mark.parametrize("seen", SEEN.values(), ids=SEEN)
def test_colours_stay_apart_for_colour_blind_readers(seen: list[list[float]], paper: Callable[..., str]) -> None:
    places = [cielab(paper(colour), seen) for colour in figure_style.COLOURS]
    # A difference of about 2 is just visible side by side. A line of text or a thin curve needs ten times as much.
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(places, 2)) > 20


def test_colours_stand_out_from_the_dark_page() -> None:
    background = to_hex(on_dark("white"))
    assert f"--paper: {background}" in page.css()  # a figure has no edge
    assert min(cielab(on_dark(colour), SEEN["all colours"])[0] for colour in figure_style.COLOURS) > 30


def test_colours_stay_apart_in_grey_and_from_the_paper() -> None:
    lightness = sorted(float(cielab(colour, SEEN["all colours"])[0]) for colour in figure_style.COLOURS)
    assert min(b - a for a, b in itertools.pairwise(lightness)) > 5 and lightness[-1] < 80


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3, pytest.param(8, marks=pytest.mark.long), 12])
def test_the_legend_is_inside_the_figure_and_takes_nothing_from_the_panels(count: int) -> None:
    figure_style.set_style()
    runs = [replace(make_run(GRADED), name=f"recipe/a-run-with-a-long-name-{i}/seed-0") for i in range(count)]
    heights = []
    for figure in (training_curves.plot_reward(by_recipe(runs)), outcomes_section.plot_outcomes(runs)):
        figure.canvas.draw()
        inside, page = figure.legends[0].get_window_extent(), figure.bbox
        assert inside.x0 >= 0 and inside.y1 <= page.y1 and inside.x1 <= page.x1
        heights.append(figure.axes[0].get_window_extent().height / figure.dpi)
        figure_style.plt.close(figure)
    assert min(heights) > 1.4  # inches


def test_averages_are_drawn_together_only_where_they_are_of_the_same_benchmarks() -> None:
    def run(name: str, *benchmarks: str):
        return replace(make_run([row | {"benchmark": b} for b in benchmarks for row in GRADED]), name=name)

    runs = [run("a", "sums_1", "sums_2"), run("b", "sums_1", "sums_2"), run("c", "words"), run("d", "words", "sums_1")]
    figure_style.set_style()
    figure = accuracy_section.plot_heldout_accuracy(by_recipe(runs))
    drawn = {axes.get_title(loc="left"): len(axes.containers) for axes in figure.axes if axes.get_visible()}
    assert drawn == {"sums_1": 3, "sums_2": 2, "average of sums_*": 2, "words": 2, "average of sums_1 and words": 1}
    figure_style.plt.close(figure)


def test_where_it_is_not_known_how_completions_ended_none_is_drawn_as_unfinished() -> None:
    run = make_run([row | {"finish_reason": None} for row in GRADED])
    right, *others = outcomes_section.plot_finished([Recipe([run])]).axes
    assert right.lines[0].get_ydata().tolist() == [100, 100]
    assert all(np.isnan(axes.lines[0].get_ydata()).all() for axes in others)


def test_thinking_is_drawn_only_where_enough_completions_think() -> None:
    thinks = [graded_row(0, f"p{i}", 0, "wrong", completion="abcd</think>abcd" if i < 5 else "abcd") for i in range(20)]
    seldom = [
        row | {"step": 10, "completion": "abcd</think>ab" if row["problem_id"] == "p0" else "x"} for row in thinks
    ]
    figure = lengths.plot_thinking([Recipe([make_run([*thinks, *seldom])])])
    thinking, answer = figure.axes[1].lines
    assert thinking.get_xdata().tolist() == answer.get_xdata().tolist() == [0]
    assert thinking.get_ydata().tolist() == answer.get_ydata().tolist() == [5]


def test_points_drawn_are_the_logged_values() -> None:
    run = make_run(GRADED, [log_row(step, accuracy=step / 10) for step in range(1, 6)])
    figure = training_curves.plot_rates([Recipe([run])])
    raw, smooth = figure.axes[0].lines[:2]
    assert raw.get_ydata().tolist() == pytest.approx([10, 20, 30, 40, 50])
    assert smooth.get_ydata().tolist() == pytest.approx([15, 20, 30, 40, 45])
    figure_style.plt.close(figure)


@pytest.mark.slow
@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), 0.0])
def test_columns_without_numbers_are_drawn_as_not_reported(value: float | None, tmp_path: Path) -> None:
    columns = ["reward_mean", "reward_std", "response_length_mean", "response_length_max", "truncated_rate", "accuracy"]
    run = make_run(GRADED, [log_row(step, **dict.fromkeys(columns, value)) for step in range(1, 4)])
    for draw in (training_curves.plot_reward, training_curves.plot_response_length, training_curves.plot_rates):
        svg = figure_style.save(draw([Recipe([run])]), tmp_path, draw.__name__)
        assert ("not reported" in svg) == (value != 0.0)


@pytest.mark.slow
def test_a_run_with_only_its_base_model_and_strange_names_is_drawn(tmp_path: Path) -> None:
    run = make_run([row | {"benchmark": "$x_1$ & <b>"} for row in GRADED[:3]], [log_row(1)])
    lists = reasoning_patterns.load_lists()
    for figure in (
        accuracy_section.plot_heldout_accuracy([Recipe([run])]),
        outcomes_section.plot_outcomes([run]),
        keyword_patterns.plot_patterns([Recipe([run])], reasoning_patterns.table(run, lists), lists),
    ):
        svg = figure_style.save(figure, tmp_path, "figure")
    assert "$x_1$ &amp; &lt;b&gt;" in figure_style.save(
        accuracy_section.plot_heldout_accuracy([Recipe([run])]), tmp_path, "figure"
    )
    assert svg.startswith("<?xml")
