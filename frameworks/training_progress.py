"""Steps and times of a training while it runs: its progress line, and whether it hangs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping

from system.quiet_time import QuietTime

PROGRESS_SECONDS = 5.0
QUIET_SECONDS = 1800.0  # a trainer that prints nothing for this long is considered hung
STEP_SECONDS = 600.0  # and one that makes no step for this long and for STEP_MEDIANS times the median step
STEP_MEDIANS = 20
PRINTED = {"reward_mean": "reward", "response_length_mean": "length"}  # in the progress line

Metrics = Mapping[str, float | None]  # of a step, by our columns


class Progress:
    """Steps and times of a training: its progress line, and whether it hangs."""

    def __init__(self, name: str, steps: int, steps_before: int, looked_every: float) -> None:
        """Start before the first step.

        Args:
            name: of the run.
            steps: of the stage.
            steps_before: of the checkpoint that the training continues from.
            looked_every: seconds between two looks whether it hangs.
        """
        self.name, self.steps, self.steps_before, self.done = name, steps, steps_before, steps_before
        self.started, self.last_print = time.monotonic(), 0.0
        self.last_step = self.started
        self.without_output, self.without_step = QuietTime(looked_every), QuietTime(looked_every)
        self.durations: list[float] = []

    def note_output(self) -> None:
        """Take note that the trainer has printed something."""
        self.without_output.restart()

    def note_update(self) -> None:
        """Take note that the newest step has made a further update."""
        self.without_step.restart()

    def reason_if_hung(self) -> str:
        """Why the trainer seems to hang; empty if it does not."""
        quiet, without_step = self.without_output.seconds(), self.without_step.seconds()
        if quiet > QUIET_SECONDS:
            return f"printed nothing for {QUIET_SECONDS / 60:.0f} minutes"
        if self.durations:  # it may print and make no steps, as when an exchange of weights has failed
            start_up, *rest = self.durations  # the first step includes the start-up
            patience = max(STEP_SECONDS, STEP_MEDIANS * statistics.median(rest) if rest else 2 * start_up)
            if without_step > patience:
                return f"made no step for {patience / 60:.0f} minutes after {self.done} steps"
        return ""

    def note_step(self, metrics: Metrics) -> None:
        """Take note of a step, and print the progress line unless it was printed a moment ago."""
        self.done += 1
        now = time.monotonic()
        self.durations.append(now - self.last_step)
        self.last_step = now
        self.without_step.restart()
        if self.done == self.steps_before + 1:
            self.started = now  # the first step includes the start-up
        if now - self.last_print < PROGRESS_SECONDS and self.done < self.steps:
            return
        self.last_print = now
        timed = self.done - self.steps_before - 1
        rate = (now - self.started) / timed if timed else float("nan")
        pace = f", {rate:.1f} s per step, {rate * (self.steps - self.done):.0f} s left" if timed else ""
        values = "".join(f", {label} {metrics[column]:.3g}" for column, label in PRINTED.items() if column in metrics)
        print(f"{self.name}: step {self.done}/{self.steps}{values}{pace}", flush=True)
