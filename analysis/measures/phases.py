"""Where the time of a training went, by the phases of its log."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from analysis.pages.figure_style import COLOURS, FAINT

# What a framework does in one go has one name: its first word is the larger part, and gives the colour.
KINDS = ("start-up", "sampling", "reward", "log-probabilities", "reference", "values", "advantages", "update",
         "weight transfer", "checkpoint", "evaluation", "rest", "end")  # fmt: skip


def seconds(log: pd.DataFrame) -> dict[str, float]:
    """By phase, the seconds of all steps of a training log; empty where it has none, as one of an earlier release."""
    total = Counter[str]()
    for phases in log["phases"].dropna() if "phases" in log else ():
        for phase in phases:
            total[phase["name"]] += phase["seconds"]
    return dict(total)


def starts(log: pd.DataFrame) -> int:
    """How often the training of a stage's log, with the phases of every step, started up."""
    return sum(any(phase["name"] == "start-up" for phase in row) for row in log["phases"])


def kind(phase: str) -> str:
    """The entry of KINDS that a phase's name begins with."""
    return next(name for name in KINDS if phase.startswith(name))


def colour(phase: str) -> str:
    """What a phase is drawn in."""
    return (*COLOURS, FAINT)[KINDS.index(kind(phase))]


def in_order(phases: dict[str, float]) -> list[tuple[str, float]]:
    """Phases and their seconds in the order of a step."""
    return sorted(phases.items(), key=lambda item: KINDS.index(kind(item[0])))
