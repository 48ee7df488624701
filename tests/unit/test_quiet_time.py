"""A machine that sleeps, a clock that is set and a suspended workflow are no hang; what hangs is one."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from eval import vllm_supervisor
from frameworks import trainer_process
from frameworks.training_progress import Progress
from tasks.sandbox import pipes
from tests.user_errors import refused


class Clock:
    """Monotonic time, which goes on as somebody says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def looks(self, progress: Any, seconds: float) -> str:
        """What a watcher says that looks as often as it should for so long."""
        for _ in range(round(seconds / trainer_process.WATCH_SECONDS)):
            self.now += trainer_process.WATCH_SECONDS
            if reason := progress.reason_if_hung():
                return reason
        return ""


def test_a_suspended_training_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    progress = Progress("r", 9, 0, trainer_process.WATCH_SECONDS)
    assert not clock.looks(progress, 1700)
    clock.now += 7200  # a closed lid, where the clock goes on; SIGSTOP
    assert not clock.looks(progress, 1700)
    progress.note_step({})
    for _ in range(3):
        assert not clock.looks(progress, 20)
        progress.note_step({})
    for _ in range(3):  # a step that makes several updates
        progress.note_output()
        assert not clock.looks(progress, 500)
        progress.note_update()
    clock.now += 7200
    assert not clock.looks(progress, 500)
    progress.note_output()
    assert "made no step" in clock.looks(progress, 200)
    assert "printed nothing" in clock.looks(Progress("r", 9, 0, trainer_process.WATCH_SECONDS), 1900)


@pytest.mark.parametrize("asleep", [True, False])
def test_a_suspended_generation_is_no_hang(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asleep: bool) -> None:
    clock, looks = Clock(monkeypatch), iter(range(10))
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    (tmp_path / "heartbeat-0").touch()

    def sleep(seconds: float) -> None:
        if (look := next(looks)) == 8:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
        clock.now += 7200 if asleep and look == 2 else 0.5

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(vllm_supervisor, "_start", lambda *_: process)
    line, plan = vllm_supervisor.ProgressLine(1, []), {"processes": 1}
    if asleep:
        assert vllm_supervisor._watch(plan, tmp_path / "plan.json", line, 60) == [1]
    else:
        with refused("generation-stalled"):
            vllm_supervisor._watch(plan, tmp_path / "plan.json", line, 1)


@pytest.mark.parametrize("asleep", [True, False])
def test_a_program_of_a_model_is_not_blamed_for_a_grader_that_slept(
    monkeypatch: pytest.MonkeyPatch, asleep: bool
) -> None:
    clock, (job, results, errors) = Clock(monkeypatch), (os.pipe() for _ in range(3))
    select = selectors.DefaultSelector.select

    def selecting(self: selectors.DefaultSelector, timeout: float | None = None) -> Any:
        events = select(self, 0)
        clock.now += 600 if asleep else timeout or 0
        return events

    monkeypatch.setattr(selectors.DefaultSelector, "select", selecting)
    os.write(results[1], b"ready\nright")
    if asleep:
        os.close(results[1])
    streams = pipes.Streams(os.fdopen(job[1], "wb"), os.fdopen(results[0], "rb"), os.fdopen(errors[0], "rb"))
    output = pipes.exchange(streams, b"job", 1000, 1)
    assert output == (b"ready\nright", b"", "" if asleep else "time")
