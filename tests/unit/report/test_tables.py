"""Tables: numbers by hand, and their three written forms."""

import math
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_runs import graded_row, make_run

from analysis.pages import table_texts
from analysis.reference import source
from analysis.report.sections import accuracy as accuracy_section
from analysis.report.sections import published_tables as published_tables_section
from analysis.report.sections import verdicts
from analysis.statistics import published_tables
from analysis.statistics.accuracy_rows import run_rows
from tests.user_errors import refused

# base: 1 of 4 right, 1 cut off; after: 2 of 4 right, 2 cut off and none of those right
OUTCOMES = {
    0: ("correct", "wrong", "truncated", "no_answer"),
    10: ("correct", "correct", "truncated", "truncated"),
}
GRADED = [
    graded_row(step, f"p{i}", 0, verdict) for step, verdicts in OUTCOMES.items() for i, verdict in enumerate(verdicts)
]


def test_completed_and_truncated_are_scored_apart() -> None:
    texts = verdicts.completed_table([make_run(GRADED)]).display
    assert texts["all completions (%)"].tolist() == ["25.0", "50.0"]
    assert texts["completed only (%)"].tolist() == ["33.3", "100.0"]
    assert texts["completed"].tolist() == ["3", "2"]
    assert texts["truncated (%)"].tolist() == ["25.0", "50.0"]
    assert texts["problems × repeats"].tolist() == ["4 × 1", "4 × 1"]


def test_completed_only_is_a_dash_where_every_completion_was_cut_off() -> None:
    run = make_run([graded_row(0, "p0", 0, "truncated"), graded_row(0, "p1", 0, "truncated")])
    assert verdicts.completed_table([run]).display["completed only (%)"].tolist() == ["–"]


def test_verdicts_add_up() -> None:
    texts = verdicts.verdicts_table([make_run(GRADED)]).display
    assert texts.columns.tolist()[3:] == [
        "correct", "wrong", "no answer", "truncated", "format error", "ungradable", "all"
    ]  # fmt: skip
    assert texts.iloc[1].tolist()[2:] == ["step 10", "2", "0", "0", "2", "0", "0", "4"]


def test_where_it_is_not_known_how_completions_ended_the_number_of_truncated_ones_is_not_known() -> None:
    table = verdicts.verdicts_table(
        [make_run(GRADED[4:]), make_run([row | {"finish_reason": None} for row in GRADED[:2]])]
    )
    assert table.display["truncated"].tolist() == ["2", "–"] and table.display["all"].tolist() == ["4", "2"]
    assert table.data["n_truncated"].isna().tolist() == [False, True]


def test_every_cell_has_an_interval_and_all_but_the_first_row_a_difference() -> None:
    rows = run_rows(make_run(GRADED))
    table, differences = accuracy_section.accuracy_table(rows), accuracy_section.differences_table(rows)
    base, last = table.display.iloc[0], table.display.iloc[1]
    assert base["checkpoint"] == "base model"
    assert base["sums (%)"].startswith("25.0 [") and last["sums (%)"].startswith("50.0 [")
    assert last["sums (%)"].endswith("] ≈") and base["sums (%)"].endswith("]")
    # differences 0, 1, 0, 0: .25 ± 3.1824 × .25, and no difference is above 1
    assert differences.display["sums (points)"].tolist() == ["+25.0 [−66.6, +100.0] ≈"]
    assert table.data.loc[1, "sums_difference"] == 0.25
    assert math.isnan(table.data.loc[0, "sums_difference"])


def checkpoints(*shares: int) -> list[dict[str, object]]:
    """One checkpoint for each number of problems, of 20, that it answers right."""
    return [
        graded_row(10 * i, f"p{j:02}", 0, "correct" if j < right else "wrong")
        for i, right in enumerate(shares)
        for j in range(20)
    ]


def test_marks_say_what_changed_against_the_base_model_and_against_the_row_above() -> None:
    marks = [row.cells["sums"].marks for row in run_rows(make_run(checkpoints(2, 12, 13, 3)))]
    assert marks == ["", "▲↑", "▲", "≈↓"]


@pytest.mark.parametrize(("shares", "best"), [((2, 12, 4), [1]), ((2, 12, 13), []), ((12, 2, 3), [0]), ((5,), [])])
def test_the_best_row_is_bold_only_if_it_is_beyond_noise_above_every_other(shares, best) -> None:
    rows = run_rows(make_run(checkpoints(*shares)))
    assert [i for i, row in enumerate(rows) if row.best] == best
    table = accuracy_section.accuracy_table(rows)
    assert table_texts.markdown(table.display, table.bold).count("**step 10**") == (1 in best)
    assert table_texts.latex(table).count(r"\textbf{step 10}") == (1 in best)


def test_one_benchmark_has_no_average_and_two_have() -> None:
    one = run_rows(make_run(GRADED))
    two = run_rows(make_run(GRADED + [row | {"benchmark": "words"} for row in GRADED]))
    assert list(one[0].cells) == ["sums"]
    assert list(two[0].cells) == ["sums", "words", "average"]
    assert two[1].cells["average"].accuracy.value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("value", "text"), [(0.1234, "+12.3"), (-0.1234, "−12.3"), (0.0, "0.0"), (-0.0001, "0.0"), (1.0, "+100.0")]
)
def test_points(value: float, text: str) -> None:
    assert table_texts.points(value) == text


def test_percent() -> None:
    assert (table_texts.percent(0.12345), table_texts.percent(float("nan"))) == ("12.3", "–")
    assert table_texts.percent(-1e-17) == "0.0"


@given(st.lists(st.lists(st.text(max_size=20), min_size=2, max_size=2), min_size=1, max_size=4))
def test_markdown_keeps_its_shape_whatever_is_in_the_cells(cells: list[list[str]]) -> None:
    lines = table_texts.markdown(pd.DataFrame(cells, columns=["a", "b"])).splitlines()
    assert len(lines) == len(cells) + 2
    assert all(line.replace("\\|", "").count("|") == 3 for line in lines)


def test_written_forms_agree(tmp_path: Path) -> None:
    table = accuracy_section.accuracy_table(run_rows(make_run(GRADED)))
    table_texts.write(table, tmp_path)
    csv = pd.read_csv(tmp_path / "accuracy.csv")
    assert csv["sums"].tolist() == [0.25, 0.5]
    cell = table.display.loc[1, "sums (%)"]
    assert cell in (tmp_path / "accuracy.md").read_text() and cell in (tmp_path / "accuracy.html").read_text()


def printed() -> pd.DataFrame:
    """The report's tables as they are printed there."""
    lines = Path(__file__).with_name("printed_tables.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return pd.DataFrame(cells[2:], columns=cells[0])


@pytest.mark.parametrize(("name", "count"), [("3.2.1(1)", 11), ("3.2.2(1)", 5), ("3.2.2(2)", 5)])
def test_the_published_tables_are_made_again_cell_by_cell(name: str, count: int) -> None:
    there = printed()
    expected = there[there["table"] == name].drop(columns="table")
    reprinted = pd.DataFrame({"model": published_tables.published_table(name)["checkpoint"]})
    for column in (*published_tables.sizes(), "average_as_printed"):
        reprinted[column] = published_tables.published_table(name)[column].map(table_texts.percent)
    assert reprinted.to_numpy().tolist() == expected.to_numpy().tolist()
    assert reprinted.shape == (count, 8)


def test_the_published_averages_are_the_means_of_their_rows() -> None:
    for name in published_tables.table_names():
        rows = published_tables.published_table(name)
        means = rows[list(published_tables.sizes())].mean(axis=1)
        assert (means - rows["average_as_printed"]).abs().max() < 0.00051


def test_every_published_percentage_is_a_whole_number_of_problems() -> None:
    for name in published_tables.table_names():
        for row in published_tables.published_table(name).to_dict("records"):
            for benchmark, size in published_tables.sizes().items():
                assert 0 <= published_tables.solved(row[benchmark], size) <= size
    with refused("impossible-share", share=0.134, problems=30):
        published_tables.solved(0.134, 30)


def test_published_rows_have_intervals_from_n_and_k_alone() -> None:
    first, second, *_ = published_tables.rows("3.2.1(1)")
    base = first.cells["aime24"].accuracy  # 4 of 30; Wilson's interval with Student's t in place of z
    assert (base.value, round(base.low, 3), round(base.high, 3)) == (0.133, 0.05, 0.309)
    assert second.cells["gsm8k"].marks == "▲↑" and second.cells["aime24"].marks == "≈"


def test_what_the_published_tables_show_is_said_in_numbers() -> None:
    sentences = published_tables_section.what_it_shows(published_tables.table_names())
    assert sentences[0].startswith(
        "Table 3.2.1(1): PPO-step160 is above Qwen2.5-Math-7B-Base on average (+19.5 points, 95 % interval +14.0 to"
    )
    assert "GRPO-step400 is not distinguishable from DeepSeek-Distill-Qwen-7B-Instruct" in sentences[2]
    assert "2 of 18 on aime24 (n = 30), 1 of 18 on amc23 (n = 40)" in sentences[3]
    assert sentences[4].startswith(
        "With 30 problems answered once, aime24 can distinguish 15/30 only from 23/30 or more"
    )
    assert sentences[5].startswith(
        "With 40 problems answered once, amc23 can distinguish 20/40 only from 29/40 or more"
    )
    assert "mp.weixin.qq.com" in source()


def test_a_table_that_was_not_published() -> None:
    with refused("unknown-name", name="9.9"):
        published_tables.published_table("9.9")


@given(st.text(max_size=40))
def test_latex_of_any_text_has_no_live_characters(text: str) -> None:
    escaped = table_texts.latex_text(text)
    plain = re.sub(r"\\(?:text[a-z]+\{\}|[a-z]+\b|[{}$&#%_])|\$\\?[a-z-]+\$", "", escaped)
    assert not set(plain) & set("\\{}$&#%_^~\n")
