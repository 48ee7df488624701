"""Tables: numbers by hand, and their three written forms."""

import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_runs import graded_row, make_run

from analysis import reference, tables
from contracts.errors import UserError

# base: 1 of 4 right, 1 cut off; after: 2 of 4 right, 2 cut off and none of those right
OUTCOMES = {
    0: ("correct", "wrong", "truncated", "no_answer"),
    10: ("correct", "correct", "truncated", "truncated"),
}
GRADED = [
    graded_row(step, f"p{i}", 0, verdict) for step, verdicts in OUTCOMES.items() for i, verdict in enumerate(verdicts)
]


def test_completed_and_truncated_are_scored_apart() -> None:
    shown = tables.completed_table([make_run(GRADED)]).shown
    assert shown["all completions (%)"].tolist() == ["25.0", "50.0"]
    assert shown["completed only (%)"].tolist() == ["33.3", "100.0"]
    assert shown["completed"].tolist() == ["3", "2"]
    assert shown["truncated (%)"].tolist() == ["25.0", "50.0"]
    assert shown["problems × repeats"].tolist() == ["4 × 1", "4 × 1"]


def test_completed_only_is_a_dash_where_every_completion_was_cut_off() -> None:
    run = make_run([graded_row(0, "p0", 0, "truncated"), graded_row(0, "p1", 0, "truncated")])
    assert tables.completed_table([run]).shown["completed only (%)"].tolist() == ["–"]


def test_verdicts_add_up() -> None:
    shown = tables.verdicts_table([make_run(GRADED)]).shown
    assert shown.columns.tolist()[3:] == [
        "correct", "wrong", "no answer", "truncated", "format error", "ungradable", "all"
    ]  # fmt: skip
    assert shown.iloc[1].tolist()[2:] == ["step 10", "2", "0", "0", "2", "0", "0", "4"]


def test_accuracy_table_has_an_interval_in_every_cell_and_a_difference_in_all_but_the_base() -> None:
    table = tables.accuracy_table(tables.accuracy_rows(make_run(GRADED)))
    base, last = table.shown.iloc[0], table.shown.iloc[1]
    assert base["checkpoint"] == "base model"
    assert base["sums (%)"].startswith("25.0 [") and last["sums (%)"].startswith("50.0 [")
    assert base["sums: difference to base (points)"] == "–"
    # differences 0, 1, 0, 0: .25 ± 3.1824 × .25, and no difference is above 1
    assert last["sums: difference to base (points)"] == "+25.0 [−54.6, +100.0] ≈"
    assert table.data.loc[1, "sums_difference"] == 0.25
    assert math.isnan(table.data.loc[0, "sums_difference"])


def test_one_benchmark_has_no_average_and_two_have() -> None:
    one = tables.accuracy_rows(make_run(GRADED))
    two = tables.accuracy_rows(make_run(GRADED + [row | {"benchmark": "words"} for row in GRADED]))
    assert list(one[0].cells) == ["sums"]
    assert list(two[0].cells) == ["sums", "words", "average"]
    assert two[1].cells["average"].accuracy.value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("value", "text"), [(0.1234, "+12.3"), (-0.1234, "−12.3"), (0.0, "0.0"), (-0.0001, "0.0"), (1.0, "+100.0")]
)
def test_points(value: float, text: str) -> None:
    assert tables.points(value) == text


def test_percent() -> None:
    assert (tables.percent(0.12345), tables.percent(float("nan"))) == ("12.3", "–")


@given(st.lists(st.lists(st.text(max_size=20), min_size=2, max_size=2), min_size=1, max_size=4))
def test_markdown_keeps_its_shape_whatever_is_in_the_cells(cells: list[list[str]]) -> None:
    lines = tables.markdown(pd.DataFrame(cells, columns=["a", "b"])).splitlines()
    assert len(lines) == len(cells) + 2
    assert all(line.replace("\\|", "").count("|") == 3 for line in lines)


def test_written_forms_agree(tmp_path: Path) -> None:
    table = tables.accuracy_table(tables.accuracy_rows(make_run(GRADED)))
    tables.write(table, tmp_path)
    csv = pd.read_csv(tmp_path / "accuracy.csv")
    assert csv["sums"].tolist() == [0.25, 0.5]
    cell = table.shown.loc[1, "sums (%)"]
    assert cell in (tmp_path / "accuracy.md").read_text() and cell in (tmp_path / "accuracy.html").read_text()


def test_published_figures_with_their_source() -> None:
    rows = reference.published("openr1")
    assert rows["step"].tolist() == [0, 100, 200, 300, 400]
    assert rows.loc[1, "math500"] == pytest.approx(0.744)
    assert rows["average_as_printed"].tolist() == pytest.approx([0.337, 0.512, 0.514, 0.519, 0.482])
    assert "mp.weixin.qq.com" in reference.source()


def test_the_published_averages_are_the_means_of_their_rows() -> None:
    for recipe in ("simplerl", "openr1", "openr1-distill"):
        rows = reference.published(recipe)
        means = rows[list(reference.BENCHMARKS)].mean(axis=1)
        assert (means - rows["average_as_printed"]).abs().max() < 0.0006


def test_recipe_without_published_figures() -> None:
    with pytest.raises(
        UserError, match="published figures of maze, but has only those of openr1, openr1-distill, simplerl"
    ):
        reference.published("maze")
