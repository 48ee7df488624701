"""The judge of drawings against known truth: drawings written by hand, and drawings by template.

python -m tests.unit.svg_confusion [--seed 1]      # a minute; other drawings by template with another seed
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from system.yaml_files import read_yaml
from tasks.svg import document_prompts
from tasks.svg.judge import judge
from tests.unit import svg_drawings

BY_HAND = Path(__file__).with_name("cases") / "svg_by_hand.yaml"
DRAWINGS = {prompt.name: prompt.drawing for prompt in document_prompts.JUDGED}


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


def by_template(seed: int = 0, share: float = 1.0) -> Iterator[Case]:
    """A share of the drawings of svg_drawings: the first of each truth."""
    sizes = (round(share * size) for size in (100, 60, 40))
    for what, truth, drawing, svg in svg_drawings.drawings(seed, *sizes):
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of the drawings by template")
    seed = parser.parse_args().seed
    for name, cases in (("by hand", by_hand()), (f"by template, seed {seed}", by_template(seed))):
        counts, mistaken = confusion(cases)
        print(f"\n| {name} | judged correct | judged wrong |\n|---|---|---|")
        for truth in ("right", "nearly", "wrong"):
            print(f"| {truth} | {counts[truth, 'correct']} | {counts[truth, 'wrong']} |")
        print(*mistaken, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main()
