"""Where the time of trainings went: the table's sums, and a page of which no log has phases."""

from __future__ import annotations

import pytest
from report_runs import graded_row, log_row, make_run

from analysis.measures import phases as measured
from analysis.report.sections import phases
from analysis.results import RunResults

PARTS = (("start-up", 10.0), ("sampling and reward", 2.0), ("update", 1.0), ("rest", 0.5), ("end", 3.0))


def trained(steps: int, **columns: object) -> RunResults:
    """Start-up is in the first step, the end in the last."""

    def of_step(step: int) -> list[dict[str, object]]:
        left_out = {"start-up" if step > 1 else "", "end" if step < steps else ""}
        return [{"name": name, "seconds": seconds} for name, seconds in PARTS if name not in left_out]

    log = [log_row(step, phases=of_step(step)) | columns for step in range(1, steps + 1)]
    return make_run([graded_row(step, "p", 0, "correct") for step in (0, steps)], log)


def test_the_table_adds_up_and_names_every_phase() -> None:
    data = phases.phases_table([trained(4)]).data.set_index("phase")
    assert data["seconds"].to_dict() == {
        "start-up": 10.0, "sampling and reward": 8.0, "update": 4.0, "rest": 2.0, "end": 3.0, "whole training": 27.0,
    }  # fmt: skip
    assert data["share"].drop("whole training").sum() == pytest.approx(1)
    assert data.loc["update", "seconds_per_step"] == 1.0


def test_the_figure_has_a_part_for_every_phase() -> None:
    (axes,) = phases.plot_phases([trained(4), trained(2)]).axes
    assert len(axes.patches) == 2 * len(PARTS)
    assert max(bar.get_x() + bar.get_width() for bar in axes.patches) == pytest.approx(27 / 60)


def test_a_log_of_an_earlier_release_has_none() -> None:
    assert measured.seconds(trained(2, phases=None).log) == {}


def test_every_framework_s_phases_have_a_colour() -> None:
    from contracts.run_file import framework_names
    from frameworks import adapter

    for name in framework_names():
        for phase in adapter.load(name).timers.values():
            assert measured.kind(phase) in measured.KINDS
