"""How far a workflow is, from Snakemake's events and the jobs' logs: what is done, what runs, time left, warnings."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cluster.failed_jobs import last_lines
from cluster.snakemake_internals import LogEvent
from contracts import paths, seeds
from contracts.paths import RunFolder
from eval import accuracy_so_far
from system.text_safety import one_line

# Of a training, of a base model, of an evaluation: `openr1/…: step 7/20, …, reward 0.25, …, 26 s left`,
# `demo: step 100/900, …, 177 s left`, `generate: 200/1800 samples, …, 1:04 left`.
STEP = re.compile(r"\S+: (?:step )?(\d+)/(\d+)\b(?:.*?, reward ([-\d.e+]+))?(?:.*?, ([\d:]+)(?: s)? left)?")
WARNING = "WARNING: "
NUMBERED = ("stage", "step", "seed")  # wildcards whose value alone says little
GRADED = RunFolder(Path()).graded.name


def duration_text(seconds: float) -> str:
    """A time for readers, such as 40 s, 12 min or 3 h 05 min."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def parse_seconds(clock: str) -> float:
    """Seconds of a time such as 64, 1:04 or 1:00:04."""
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + float(part or 0)
    return total


def job_label(event: Mapping[str, Any]) -> str:
    """A job for readers, from its JOB_INFO event: its rule and what it is for, by its wildcards.

    Such as `train openr1/qwen2.5-math-7b/seed-0 stage 1`, `problems benchmarks gsm8k`.
    """
    wildcards = dict(event["wildcards"] or {})
    parts = [event["rule_name"]]
    if {"recipe", "run"} <= wildcards.keys():
        run = f"{wildcards.pop('recipe')}/{wildcards.pop('run')}"
        parts.append(seeds.run_id(run, wildcards.pop("seed")) if "seed" in wildcards else run)
    parts += [f"{key} {value}" if key in NUMBERED else str(value) for key, value in wildcards.items()]
    return one_line(" ".join(parts))


def _accuracies(job: Mapping[str, Any]) -> dict[str, str]:
    """By run, the accuracy if the job has graded its samples."""
    if job["rule_name"] == "measure_contamination":  # answers to half of a question
        return {}
    graded = [output for output in map(Path, job.get("output") or ()) if output.name == GRADED]
    by_run = {run: accuracy_so_far.read(output) for output in graded if (run := paths.run_of_graded(output))}
    return {run: text for run, accuracy in by_run.items() if (text := accuracy_so_far.summary(run, accuracy))}


class Ended(NamedTuple):
    """A job that has ended: its JOB_INFO event, how long it took, and the accuracies by run that are known since."""

    job: Mapping[str, Any]
    seconds: float
    accuracies: dict[str, str]


class Progress:
    """What is done, what runs and what is left, fed with Snakemake's events (the attributes of its log records).

    Args:
        rules: asked for all rules in the order of the stages, when jobs are known, and whether each is a mere target.
    """

    def __init__(self, rules: Callable[[], Mapping[str, bool]] = dict) -> None:
        """Start with nothing known."""
        self.rules, self.targets = rules, set[str]()
        self.total: Counter[str] = Counter()  # jobs by rule, in the order of the stages
        self.done: Counter[str] = Counter()
        self.known: dict[int, Mapping[str, Any]] = {}
        self.running: dict[int, float] = {}  # and when they started
        self.seconds: dict[str, list[float]] = defaultdict(list)  # of finished jobs, by rule
        self.warnings: dict[str, None] = {}  # in order
        self.heldout: dict[str, str] = {}  # accuracy so far, by run

    def add(self, event: Mapping[str, Any], now: float) -> Ended | None:
        """Take one event; returns the job that has ended with it. `now` is in seconds."""
        kind = event.get("event")
        if kind == LogEvent.RUN_INFO:
            rules = self.rules()
            self.targets = {rule for rule, target in rules.items() if target}
            positions = {rule: position for position, rule in enumerate(rules)}
            counted = ((rule, count) for rule, count in event["stats"].items() if rule != "total")
            self.total = Counter(dict(sorted(counted, key=lambda one: positions.get(one[0], len(positions)))))
        elif kind == LogEvent.JOB_INFO:
            self.known[event["jobid"]] = event
            self.running[event["jobid"]] = now
        elif kind == LogEvent.JOB_FINISHED and (started := self.running.pop(event["job_id"], None)) is not None:
            job = self.known[event["job_id"]]
            self.done[job["rule_name"]] += 1
            self.seconds[job["rule_name"]].append(now - started)
            self.heldout |= (accuracies := _accuracies(job))
            return Ended(job, now - started, accuracies)
        elif kind == LogEvent.JOB_ERROR:
            self.running.pop(event["jobid"], None)
        return None

    def left(self, now: float) -> tuple[float, bool] | None:
        """Seconds left of what is known, and whether that is the whole; None before a job has ended.

        Waiting jobs take as long as those of their rule took on average, running ones what their log says. Of a rule
        without an ended job nothing is known.
        """
        if not self.seconds:
            return None
        usual = {rule: sum(own) / len(own) for rule, own in self.seconds.items()}
        waiting = self.total - self.done - Counter(self.known[job]["rule_name"] for job in self.running)
        left = sum(usual.get(rule, 0) * count for rule, count in waiting.items())
        unknown = {rule for rule in waiting if rule not in usual and rule not in self.targets}
        for job, started in self.running.items():
            rule, told = self.known[job]["rule_name"], self.step(job)[2]
            if told is None and rule not in usual:
                unknown.add(rule)
            left += told if told is not None else max(usual.get(rule, 0) - (now - started), 0)
        return left / max(len(self.running), 1), not unknown

    def step(self, job: int) -> tuple[str, str, float | None]:
        """The newest step, reward and seconds left of a running job from its log; warnings are kept."""
        newest: tuple[str, str, float | None] = ("", "", None)
        for log in self.known[job]["log"]:
            for line in last_lines(Path(log)):
                if line.startswith(WARNING):
                    self.warnings[one_line(line.removeprefix(WARNING))] = None
                elif match := STEP.match(line):
                    step, total, reward, left = match.groups()
                    newest = (f"{step}/{total}", reward or "", parse_seconds(left) if left else None)
        return newest

    def summary(self, now: float) -> str:
        """How much is done, and the time left, such as `12 of 57 jobs, about 8 min left`."""
        text = f"{self.done.total()} of {self.total.total()} jobs"
        left, whole = self.left(now) or (0.0, False)
        return text + (f", {'about' if whole else 'at least'} {duration_text(left)} left" if left else "")

    @property
    def is_shown(self) -> bool:
        """Whether there is progress to show: one job alone, such as `help`, prints what it is asked for."""
        return self.total.total() > 1
