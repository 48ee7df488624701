"""Where the time of a training goes: seconds of each step by phase, and what lies between the phases.

A framework's own timers (Adapter.timers) say how long its phases take. From outside, the trainer's start, the lines
that it prints for its steps, and its end are timed; what the timers leave of a step is its rest. So the phases of a
stage's rows add up to the time from the start of its trainer to its end:

    start-up       of the first step of a start: until the framework's own time of that step begins
    sampling …     the framework's timers
    rest           of a step: what is left of the time since the line of the step before. It may be below 0 by as
                   much as that line came late
    end            of the last step: until the process has ended

Most trainers write a step's checkpoint after its line; then it is a phase of the step after. A step that makes several
updates may have a line for each: it ends with the last.

With each step goes what was seen of memory and GPUs since the one before (memory_use.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from frameworks import memory_use
from system import json_lines

FOLDER = "step_times"  # in the work folder; each start of the trainer has a file
Phases = list[dict[str, Any]]  # name and seconds, in the order of a step


class Clock:
    """Appends when a start of the trainer began, made its steps and ended."""

    def __init__(self, work: Path, start: int, resumed_from: int, environments: Sequence[Mapping[str, str]]) -> None:
        """Note the start of this number, which continues from a step.

        Args:
            work: the stage's work folder.
            start: its number.
            resumed_from: the step.
            environments: of the trainer and of its servers; none if they run on several nodes, of which this one is
                not the measure.
        """
        self._file = work / FOLDER / f"{start:03d}.jsonl"
        self._file.parent.mkdir(exist_ok=True)
        self._memory = memory_use.Watch([{**os.environ, **one} for one in environments]) if environments else None
        self._note("start", resumed_from)

    def note_step(self, step: int) -> None:
        """A line of a step was printed."""
        self._note("step", step)

    def note_end(self) -> None:
        """The trainer's process has ended."""
        self._note("end", None)

    def close(self) -> None:
        """No step will follow."""
        if self._memory:
            self._memory.end()

    def _note(self, event: str, step: int | None) -> None:
        now, used = time.monotonic(), self._memory.take() if self._memory else {}
        with self._file.open("a", encoding="ascii") as file:
            file.write(json_lines.dump({"event": event, "step": step, "time": now, "used": {**used}}))


class Interval:
    """The seconds until a step's line was printed, whether they begin with the trainer's start, and what was used."""

    def __init__(self, seconds: float, first: bool, used: Mapping[str, float] = MappingProxyType({})) -> None:
        """After the last step `end` is added."""
        self.seconds, self.first, self.used, self.end = seconds, first, dict(used), 0.0

    def go_on(self, seconds: float, used: Mapping[str, float], end: bool) -> None:
        """The step had another line so many seconds later, or the trainer ended then."""
        past = self.seconds + self.end
        for name, value in used.items():
            before = self.used.get(name, value)
            is_share = name == "gpu_utilisation" and past + seconds  # the others are peaks
            self.used[name] = (before * past + value * seconds) / (past + seconds) if is_share else max(before, value)
        if end:
            self.end += seconds
        else:
            self.seconds += seconds


def intervals(work: Path) -> dict[int, Interval]:
    """By step, its interval in the last start of the trainer that made it; nothing where none were noted."""
    steps: dict[int, Interval] = {}
    for file in sorted((work / FOLDER).glob("*.jsonl")):
        before, newest = 0.0, 0
        for note in json_lines.read(file, torn_last_line=True):
            seconds, used = note["time"] - before, note.get("used", {})
            if newest and (note["event"] == "end" or note["step"] == newest):
                steps[newest].go_on(seconds, used, note["event"] == "end")
            elif note["event"] == "step":
                steps[note["step"]] = Interval(seconds, not newest, used)
                newest = note["step"]
            before = note["time"]
    return steps


def of_step(
    timers: Mapping[str, str], logged: Mapping[str, float], seconds: float | None, interval: Interval | None
) -> Phases | None:
    """The phases of a step; None where nothing is known.

    Args:
        timers: a framework's name of a timer -> the phase it is part of, in the order of a step.
        logged: what the framework logged for the step, in seconds.
        seconds: of the whole step, as the framework says.
        interval: from outside.
    """
    phases = dict.fromkeys(timers.values(), 0.0)
    for name, phase in timers.items():
        phases[phase] += logged.get(name, 0.0)
    timed = sum(phases.values())
    if interval is not None:
        in_step = interval.seconds if seconds is None or not interval.first else max(seconds, timed)
        own = min(in_step, interval.seconds)
        phases = {"start-up": interval.seconds - own, **phases, "rest": own - timed, "end": interval.end}
    elif seconds is not None:
        phases["rest"] = seconds - timed
    used = [{"name": name, "seconds": value} for name, value in phases.items() if value]
    return used or None
