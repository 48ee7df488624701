"""What holds of the phases and tokens of every framework's steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from frameworks import phases


def check(work: Path, rows: Sequence[dict[str, Any]], names: Collection[str]) -> None:
    """Every step has these phases; with start-up, rest and end they are all of the time, and the timers not more.

    A step whose line was not read before its training was ended has no time from outside.

    Args:
        work: of the training.
        rows: of its log.
        names: of the phases that the framework times in every step.
    """
    intervals = phases.intervals(work)
    for row in rows:
        times = {phase["name"]: phase["seconds"] for phase in row["phases"]}
        assert set(names) <= times.keys() and all(times[name] > 0 for name in names), row["step"]
        if (interval := intervals.get(row["step"])) is None:
            continue
        assert ("start-up" in times) == interval.first
        assert sum(times.values()) == pytest.approx(interval.seconds + interval.end)
        assert row["trained_tokens"] > (row["sampled_tokens"] or 0)  # prompts, too
        assert 0 <= row["padding_share"] < 1
    assert rows[-1]["phases"][-1]["name"] == "end"
    assert len(intervals) >= len(rows) - 1
    of_intervals = [row for row in rows if row["step"] in intervals]
    timed = sum(phase["seconds"] for row in of_intervals for phase in row["phases"] if phase["name"] != "rest")
    late = sum(  # a first line that came late counts as start-up, and is missing in the next step's rest
        max(0.0, -sum(phase["seconds"] for phase in row["phases"] if phase["name"] == "rest"))
        for before, row in pairwise(of_intervals)
        if intervals[before["step"]].first
    )
    assert timed - late <= 1.05 * sum(interval.seconds + interval.end for interval in intervals.values())
