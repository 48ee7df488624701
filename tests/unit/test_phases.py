"""Phases of a step: whatever the timers say, they add up to the time from a trainer's start to its end."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks import memory_use, phases
from tests.waiting import wait_until

TIMERS = {"timing/generation": "sampling", "timing/score": "reward", "timing/rest_of_score": "reward"}
SECONDS = st.floats(0, 100)


def note(
    monkeypatch: pytest.MonkeyPatch, work: Path, start: int, resumed_from: int, *events: tuple[str, float]
) -> None:
    """A start of the trainer at second 100, with its steps and its end at seconds after it."""
    times = iter([100.0, *(100 + seconds for _, seconds in events)])
    monkeypatch.setattr(phases, "time", SimpleNamespace(monotonic=lambda: next(times)))
    with closing(phases.Clock(work, start, resumed_from, [])) as clock:
        for event, _ in events:
            clock.note_end() if event == "end" else clock.note_step(int(event))


def test_a_step_that_is_repeated_counts_as_the_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert phases.intervals(tmp_path) == {}
    note(monkeypatch, tmp_path, 1, 0, ("1", 10), ("2", 12), ("3", 15))  # killed
    note(monkeypatch, tmp_path, 2, 2, ("3", 7), ("4", 8), ("end", 10.5))
    steps = phases.intervals(tmp_path)
    read = {step: (one.seconds, one.first, one.end) for step, one in steps.items()}
    assert read == {1: (10, True, 0), 2: (2, False, 0), 3: (7, True, 0), 4: (1, False, 2.5)}


def test_a_step_ends_with_the_line_of_its_last_update(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    note(monkeypatch, tmp_path, 1, 0, ("1", 90), ("1", 100), ("1", 110), ("2", 140), ("2", 150), ("end", 155))
    steps = phases.intervals(tmp_path)
    assert {step: (one.seconds, one.end) for step, one in steps.items()} == {1: (110, 0), 2: (40, 5)}
    logged = {"timing/generation": 20.0, "timing/score": 30.0}
    assert [tuple(row.values()) for row in phases.of_step(TIMERS, logged, 50.0, steps[1]) or []] == [
        ("start-up", 60.0), ("sampling", 20.0), ("reward", 30.0),
    ]  # fmt: skip


def test_what_was_used_over_all_lines_of_a_step() -> None:
    step = phases.Interval(30.0, True, {"host_memory_gb": 3.0, "gpu_utilisation": 0.2})
    step.go_on(10.0, {"host_memory_gb": 2.0, "gpu_memory_gb": 7.0, "gpu_utilisation": 0.6}, end=False)
    step.go_on(0.0, {}, end=False)
    assert step.used == {"host_memory_gb": 3.0, "gpu_memory_gb": 7.0, "gpu_utilisation": pytest.approx(0.3)}
    step.go_on(80.0, {"host_memory_gb": 9.0, "gpu_utilisation": 0.0}, end=True)  # writes the last checkpoint
    assert step.used == {"host_memory_gb": 9.0, "gpu_memory_gb": 7.0, "gpu_utilisation": pytest.approx(0.1)}
    assert (step.seconds, step.end) == (40.0, 80.0)


def test_of_several_nodes_one_is_not_the_measure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory_use, "Watch", lambda _: pytest.fail("looked"))
    with closing(phases.Clock(tmp_path, 1, 0, [])) as clock:
        clock.note_step(1)
    assert phases.intervals(tmp_path)[1].used == {}


def test_what_a_trainer_uses_goes_with_its_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("frameworks.memory_use.SECONDS", 0.001)

    def seen() -> bool:
        clock.note_step(1)
        return phases.intervals(tmp_path)[1].used.get("host_memory_gb", 0.0) > 0.01

    with closing(phases.Clock(tmp_path, 1, 0, [{}])) as clock:
        wait_until(seen)


def test_timers_that_know_more_than_the_framework_s_own_time_of_a_step_are_not_its_start() -> None:
    rows = phases.of_step(TIMERS, {"timing/generation": 4.0}, 3.0, phases.Interval(10.0, first=True))
    assert [tuple(row.values()) for row in rows or []] == [("start-up", 6.0), ("sampling", 4.0)]


@given(st.lists(st.tuples(SECONDS, SECONDS, SECONDS, SECONDS, st.none() | SECONDS), min_size=1, max_size=5), SECONDS)
def test_they_add_up(steps: list[tuple[float, float, float, float, float | None]], end: float) -> None:
    total = whole = 0.0
    for number, (seconds, first, second, third, own) in enumerate(steps):
        interval = phases.Interval(seconds, first=number == 0)
        interval.end = end if number == len(steps) - 1 else 0.0
        logged = {"timing/generation": first, "timing/score": second, "timing/rest_of_score": third, "loss": 1.0}
        rows = phases.of_step(TIMERS, logged, own, interval) or []
        names = [row["name"] for row in rows]
        assert len(set(names)) == len(names) and ("start-up" not in names or number == 0)
        total, whole = total + sum(row["seconds"] for row in rows), whole + interval.seconds + interval.end
    assert total == pytest.approx(whole)


def test_the_first_step_begins_with_the_start() -> None:
    rows = phases.of_step(
        TIMERS, {"timing/generation": 2.0, "timing/score": 0.5}, 3.0, phases.Interval(10.0, first=True)
    )
    assert {row["name"]: row["seconds"] for row in rows or []} == {
        "start-up": 7.0, "sampling": 2.0, "reward": 0.5, "rest": 0.5,
    }  # fmt: skip


def test_without_times_from_outside_the_framework_s_own_are_taken() -> None:
    rows = phases.of_step(TIMERS, {"timing/generation": 2.0}, 3.0, None)
    assert [tuple(row.values()) for row in rows or []] == [("sampling", 2.0), ("rest", 1.0)]
    assert phases.of_step(TIMERS, {}, None, None) is None
