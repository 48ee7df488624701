"""Drawings in a report: counts beside the document's, and a sheet of pictures that holds nothing but pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from report_runs import graded_row, make_run

from analysis.report import build
from analysis.report.sections import drawings
from analysis.results import RunResults
from tasks.problems import Problem

HOSTILE = "<svg onload='alert(1)'><script>alert(2)</script><rect width='300' height='150' fill='#0f0'/></svg>"
ANSWERS = [(HOSTILE, "correct"), ("<svg><rect></svg>", "format_error"), (None, "no_answer"), (HOSTILE, "ungradable")]


def run_that_draws() -> RunResults:
    run = make_run([graded_row(0, "hexagon", n, verdict, answer=text) for n, (text, verdict) in enumerate(ANSWERS)])
    run.problem_rows["sums"] = {"hexagon": Problem("hexagon", "svg", "正六边形", "", {"printed": "regular hexagon"})}
    return run


def test_counts_stand_beside_the_printed_ones() -> None:
    run = run_that_draws()
    assert drawings.success_counts(run, 0) == {"regular hexagon": "1/3"}  # one could not be judged
    texts = drawings.drawings_table([run]).display.set_index("prompt")
    own = texts.columns[-1]
    assert (
        own.startswith(run.display_name)
        and texts.loc["regular hexagon", own] == "1/3"
        and texts.loc["gear", own] == "–"
    )
    assert texts.loc["regular hexagon", "phi-4"] == "11/16"


def test_the_sheet_has_a_framed_picture_for_each_draw() -> None:
    ((run, name),) = drawings.runs_that_draw([run_that_draws(), make_run([graded_row(0, "a", 0, "correct")])])
    labels, pixels = drawings._sheet(run, name)
    side = drawings.CELL + 2 * drawings.FRAME
    assert labels == ["regular hexagon"] and pixels.shape == (side, drawings.COLUMNS * side, 3)
    middles = pixels[side // 2, side // 2 :: side]
    assert middles[:4].tolist() == [[0, 255, 0], [*drawings.NOTHING], [*drawings.NOTHING], [0, 255, 0]]
    assert pixels[0, 0].tolist() == [*drawings.RIGHT] and pixels[0, side].tolist() == [*drawings.WRONG]
    assert np.all(pixels[:, 4 * side :] == 255)


@pytest.mark.slow
def test_the_page_holds_pixels_alone(tmp_path: Path) -> None:
    page = build.report([run_that_draws()], tmp_path, "t", "demo").read_text()
    assert 'id="figure-contact_sheet"' in page and "alert(2)" not in page.replace("&lt;script&gt;alert(2)", "")
    assert "onload='alert" not in page and (tmp_path / "figures" / "contact_sheet.png").is_file()
