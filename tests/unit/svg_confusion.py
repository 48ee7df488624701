"""The judge of drawings against known truth: drawings written by hand, and drawings by template.

python -m tests.unit.svg_confusion       # a minute
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from contracts.yaml_files import read_yaml
from tasks.svg import document
from tasks.svg.judge import judge
from tests.unit import svg_drawings

BY_HAND = Path(__file__).with_name("cases") / "svg_by_hand.yaml"
DRAWINGS = {prompt.name: prompt.drawing for prompt in document.JUDGED}


class Case(NamedTuple):
    """A drawing, what was asked for, and what a person says of it: right, nearly or wrong."""

    what: str
    truth: str
    drawing: dict[str, Any]
    svg: str


def by_hand() -> Iterator[Case]:
    """The drawings of svg_by_hand.yaml."""
    for one in read_yaml(BY_HAND)["drawings"]:
        drawing = {"rule": "figures", **one["figures"]} if "figures" in one else DRAWINGS[one["prompt"]]
        yield Case(f"{one['prompt']}: {one['what']}", one["truth"], drawing, one["svg"])


def by_template() -> Iterator[Case]:
    """The drawings of svg_drawings."""
    for what, truth, drawing, svg in svg_drawings.drawings():
        yield Case(what, truth, drawing, svg)


def confusion(cases: Iterator[Case]) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How often each verdict was given for each truth, and the drawings that were judged wrongly."""
    counts: Counter[tuple[str, str]] = Counter()
    mistaken = []
    for case in cases:
        verdict = judge("", case.svg, {"drawing": case.drawing})
        counts[case.truth, verdict] += 1
        if (verdict == "correct") != (case.truth == "right"):
            mistaken.append(f"{case.what} ({case.truth}) was judged {verdict}")
    return counts, mistaken


def main() -> None:
    """Print both tables."""
    for name, cases in (("by hand", by_hand()), ("by template", by_template())):
        counts, mistaken = confusion(cases)
        print(f"\n| {name} | judged correct | judged wrong |\n|---|---|---|")
        for truth in ("right", "nearly", "wrong"):
            print(f"| {truth} | {counts[truth, 'correct']} | {counts[truth, 'wrong']} |")
        print(*mistaken, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main()
