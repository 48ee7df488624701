"""The table of trials: how often each fault was tried, and how it ended."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from contracts.run_file import ROOT
from tests.faults.bed import SEED

TABLE = ROOT / os.environ.get("FAULT_TABLE", "results/faults.md")
OUTCOMES = ("same result", "refused, then the same result", "one clear sentence", "noticed", "fault")


class Book:
    """Counts outcomes by kind of fault and what it struck."""

    def __init__(self) -> None:
        """Start empty."""
        self._outcomes: dict[tuple[str, str], Counter[str]] = {}
        self._faults: list[str] = []

    @contextmanager
    def trial(self, kind: str, struck: str, name: object) -> Iterator[list[str]]:
        """Write down how a trial ends: what its body appends to the list, or the error that it raises."""
        outcome: list[str] = []
        counted = self._outcomes.setdefault((kind, struck), Counter())
        try:
            yield outcome
            assert outcome[-1] in OUTCOMES, outcome
            counted[outcome[-1]] += 1
        except Exception as error:
            counted["fault"] += 1
            self._faults.append(f"{kind}, {struck}, trial {name}: {' '.join(str(error).split())[:400]}")
            raise
        finally:
            TABLE.parent.mkdir(parents=True, exist_ok=True)
            TABLE.write_text(self.markdown(), encoding="utf-8")  # after each, because a night's run may be cut short

    def markdown(self) -> str:
        """The table, and the faults one by one."""
        head = ["fault", "in", "trials", *OUTCOMES]
        rows = [
            [kind, struck, str(counted.total()), *(str(counted[outcome] or "") for outcome in OUTCOMES)]
            for (kind, struck), counted in sorted(self._outcomes.items())
        ]
        total = sum((counted for counted in self._outcomes.values()), Counter[str]())
        rows.append(["all", "", str(total.total()), *(str(total[outcome]) for outcome in OUTCOMES)])
        lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
        return "\n".join([f"Seed {SEED}.", "", *lines, "", *(f"- {fault}" for fault in self._faults), ""])
