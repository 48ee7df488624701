"""Drawings to ask for: the document's prompts, or figures by template.

document   the prompts of tasks/svg/document_prompts.py that a rule judges, in their order
one        a figure: shape and colour
place      a figure in a quarter of the picture or in its middle
count      two to five equal figures in a row or a column
pair       a figure above or to the left of another one
mirrored   two equal figures that are mirror images of each other
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from system.errors import UserError
from tasks.problem_generation import ProblemSampler, check_names
from tasks.problems import Problem
from tasks.svg.document_prompts import JUDGED

TASK = "svg"
TRIES = 2_000  # for one more problem of a kind before there counts as none
KINDS = ("one", "place", "count", "pair", "mirrored")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "black")
SHAPES = {
    "circle": "circle",
    "square": "square",
    "triangle": "equilateral triangle",
    "regular pentagon": "regular pentagon",
    "regular hexagon": "regular hexagon",
    "star": "five-pointed star",
}  # as tasks.svg.layouts calls them, and in words
PLACES = ("top left", "top right", "bottom left", "bottom right", "middle")
NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five"}


def question_text(kind: str, figures: Sequence[dict[str, Any]], layout: str) -> str:
    """What is asked for, in words."""
    descriptions = [f"{one['colour']} {SHAPES[one['shape']]}" for one in figures]
    named = [f"{'an' if word[0] in 'aeo' else 'a'} {word}" for word in descriptions]
    count = NUMBERS.get(figures[0]["count"], "")
    if kind == "place":
        return f"{named[0]} in the middle" if layout == "middle" else f"{named[0]} in the {layout} quarter"
    if kind == "count":
        where = "side by side in a row" if layout == "row" else "one below the other in a column"
        return f"{count} {descriptions[0]}s of one size, {where}, which do not touch"
    if kind == "pair":
        where = "above" if layout == "above" else "to the left of"
        return f"{named[0]} {where} {named[1]}, which do not touch"
    if kind == "mirrored":
        where = "one in the left half and one in the right half"
        return f"two {descriptions[0]}s that are mirror images of each other, {where}"
    return named[0]


def _sample_figures(kind: str, rng: random.Random) -> tuple[list[dict[str, Any]], str]:
    """Figures and layout of a problem."""
    figures = [{"shape": rng.choice(list(SHAPES)), "colour": rng.choice(COLOURS), "count": 1}]
    if kind == "count":
        figures[0]["count"] = rng.choice(list(NUMBERS))
        return figures, rng.choice(("row", "column"))
    if kind == "mirrored":
        figures[0]["count"] = 2
        return figures, "mirrored"
    if kind == "pair":
        others = [(shape, colour) for shape in SHAPES for colour in COLOURS if shape != figures[0]["shape"]]
        shape, colour = rng.choice([one for one in others if one[1] != figures[0]["colour"]])
        return [*figures, {"shape": shape, "colour": colour, "count": 1}], rng.choice(("above", "left"))
    return figures, rng.choice(PLACES) if kind == "place" else ""


def generate(rows: int, split: str, seed: int, kinds: Sequence[str] = KINDS) -> list[Problem]:
    """`rows` distinct problems of one split, the kinds in turn as far as they reach; the same for the same arguments.

    Args:
        rows: how many; of the document's prompts, exactly those that a rule judges.
        split: `train` or `test`; the document's prompts are a test alone.
        seed: of every choice.
        kinds: names in KINDS, or `document` alone.

    Raises:
        UserError: an argument is out of range, or there are no more problems.
    """
    if list(kinds) == ["document"]:
        return _document_problems(rows, split)
    check_names(TASK, "kind", kinds, KINDS)
    if not kinds:
        raise UserError("drawings need one or more kinds", code="argument-out-of-range")
    sampler = ProblemSampler(TASK, split, seed)

    def attempt(kind: str) -> Problem | None:
        figures, layout = _sample_figures(kind, sampler.rng)
        text = question_text(kind, figures, layout)
        if not sampler.in_split(f"svg {text}") or not sampler.is_new(text):
            return None
        meta = {"drawing": {"rule": "figures", "figures": figures, "layout": layout}, "level": kind}
        return sampler.problem(text, text, meta)

    return sampler.generate(rows, attempt, kinds, tries=TRIES, go_on=True)


def _document_problems(rows: int, split: str) -> list[Problem]:
    if split != "test" or rows != len(JUDGED):
        raise UserError(
            f"svg has {len(JUDGED)} prompts of the document with a rule, as a test: not {rows} ({split})",
            code="fixed-set-of-problems",
            rows=len(JUDGED),
        )
    return [
        Problem(
            prompt.name,
            TASK,
            prompt.wording,
            prompt.printed,
            {"drawing": prompt.drawing, "printed": prompt.printed, "level": "document"},
        )
        for prompt in JUDGED
    ]
