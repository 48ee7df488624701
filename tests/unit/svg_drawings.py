"""Two hundred drawings by template with known truth: each problem drawn as asked for, nearly so, and wrongly.

They are drawn in other ways than the judge looks at them: from vertices and circles, filled or outlines, moved by
transforms, with colours as names, as hexadecimal numbers and in style sheets.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tasks.svg import problems

SIDE = 400
SHADES = {
    "red": ("red", "#e02020", "crimson"), "orange": ("orange", "#ff8c00", "darkorange"),
    "yellow": ("yellow", "#ffe100", "gold"), "green": ("green", "seagreen", "#32cd32"),
    "blue": ("blue", "royalblue", "#1e90ff"), "purple": ("purple", "#8a2be2", "rebeccapurple"),
    "black": ("black", "#111", "rgb(20,20,20)"),
}  # fmt: skip
CORNERS = {"triangle": 3, "square": 4, "regular pentagon": 5, "regular hexagon": 6, "star": 5}
ANOTHER = {"circle": "square", "square": "regular pentagon", "triangle": "square",
           "regular pentagon": "regular hexagon", "regular hexagon": "square", "star": "regular pentagon"}  # fmt: skip
NEXT = {"red": "orange", "orange": "yellow", "yellow": "green", "green": "blue", "blue": "purple", "purple": "red",
        "black": "blue"}  # fmt: skip
FAULTS = ("squeezed", "other shape", "other colour", "one too many", "misplaced")
WRONG = ("empty", "white", "outside", "words", "other figures")


class Figure(NamedTuple):
    """A figure and where it is; `squeeze` scales its height."""

    shape: str
    colour: str
    x: float
    y: float
    radius: float
    squeeze: float = 1.0


def vertices(shape: str, radius: float) -> list[tuple[float, float]]:
    """Around (0, 0), the first at the top; a square lies flat."""
    count = CORNERS[shape]
    turn = math.pi / 4 if shape == "square" else 0.0
    around = [radius] if shape != "star" else [radius, radius * 0.382]
    steps = count * len(around)
    return [
        (around[i % len(around)] * math.sin(2 * math.pi * i / steps + turn),
         -around[i % len(around)] * math.cos(2 * math.pi * i / steps + turn))
        for i in range(steps)
    ]  # fmt: skip


def element(figure: Figure, shade: str, outlined: bool, rng: random.Random) -> str:
    """The figure as an element, drawn in one of several ways."""
    paint = rng.choice((f'fill="{shade}"', f'style="fill:{shade};stroke-width:0"'))
    if outlined:
        paint = f'fill="none" stroke="{shade}" stroke-width="{0.08 * figure.radius:.1f}"'
    if figure.shape == "circle":
        r = figure.radius
        body = rng.choice((
            f'<circle r="{r:.1f}" {paint}/>', f'<ellipse rx="{r:.1f}" ry="{r:.1f}" {paint}/>',
            f'<path d="M{-r:.1f} 0A{r:.1f} {r:.1f} 0 1 1 {r:.1f} 0A{r:.1f} {r:.1f} 0 1 1 {-r:.1f} 0Z" {paint}/>',
        ))  # fmt: skip
    else:
        points = [f"{x:.2f},{y:.2f}" for x, y in vertices(figure.shape, figure.radius)]
        body = rng.choice(
            (f'<polygon points="{" ".join(points)}" {paint}/>', f'<path d="M{"L".join(points)}Z" {paint}/>')
        )
    return f'<g transform="translate({figure.x:.1f} {figure.y:.1f}) scale(1 {figure.squeeze})">{body}</g>'


def document(figures: list[Figure], rng: random.Random) -> str:
    """The figures as an SVG document, on white or on nothing."""
    ground = rng.choice(("", f'<rect width="{SIDE}" height="{SIDE}" fill="white"/>'))
    shades = {figure.colour: rng.choice(SHADES.get(figure.colour, (figure.colour,))) for figure in figures}
    outlined = rng.random() < 1 / 3
    drawn = "".join(element(figure, shades[figure.colour], outlined, rng) for figure in figures)
    size = rng.choice((f'width="{SIDE}" height="{SIDE}"', f'viewBox="0 0 {SIDE} {SIDE}"'))
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{ground}{drawn}</svg>'


def as_asked(drawing: dict[str, Any], rng: random.Random) -> list[Figure]:
    """Figures that are what a problem asks for."""
    first, layout = drawing["figures"][0], drawing["layout"]
    count, named = first["count"], (first["shape"], first["colour"])
    if layout in ("row", "column"):
        step = SIDE / count
        along = [step * (i + 0.5) for i in range(count)]
        return [Figure(*named, *((at, 200) if layout == "row" else (200, at)), 0.4 * step) for at in along]
    if layout == "mirrored":
        return [Figure(*named, x, 200, 65) for x in (110, 290)]
    if layout in ("above", "left"):
        second = drawing["figures"][1]
        places = ((200, 105), (200, 300)) if layout == "above" else ((105, 200), (300, 200))
        return [Figure(one["shape"], one["colour"], *position, rng.randint(55, 80))
                for one, position in zip((first, second), places, strict=True)]  # fmt: skip
    if layout and layout != "middle":
        x, y = 100 if "left" in layout else 300, 100 if "top" in layout else 300
        return [Figure(*named, x, y, rng.randint(50, 80))]
    return [Figure(*named, 200, 200, rng.randint(70, 150))]


def spoiled(figures: list[Figure], drawing: dict[str, Any], fault: str) -> list[Figure]:
    """The figures with one fault that a person sees."""
    one, layout = figures[0], drawing["layout"]
    if fault == "squeezed":
        return [one._replace(squeeze=0.7), *figures[1:]]
    if fault == "other shape":
        return [one._replace(shape=ANOTHER[one.shape]), *figures[1:]]
    if fault == "other colour":
        return [one._replace(colour=NEXT[one.colour]), *figures[1:]]
    if fault == "one too many" or layout == "":
        small = [each._replace(x=0.7 * each.x, y=0.7 * each.y, radius=0.6 * each.radius) for each in figures]
        return [*small, Figure(one.shape, one.colour, 350, 350, 35)]
    if layout in ("above", "left"):
        other = figures[1]
        return [one._replace(x=other.x, y=other.y), other._replace(x=one.x, y=one.y)]
    if layout == "row" or layout == "mirrored":
        return [one._replace(y=one.y - 0.9 * one.radius), *figures[1:]]
    if layout == "column":
        return [one._replace(x=one.x - 0.9 * one.radius), *figures[1:]]
    return [one._replace(x=200 if layout != "middle" else 110, y=200 if layout != "middle" else 120)]


def wrong(figures: list[Figure], kind: str, rng: random.Random) -> str:
    """A drawing that shows nothing of what was asked for."""
    if kind == "empty":
        return document([], rng)
    if kind == "white":
        return document([figure._replace(colour="white") for figure in figures], rng)
    if kind == "outside":
        return document([figure._replace(x=figure.x + 2 * SIDE) for figure in figures], rng)
    if kind == "words":
        return '<svg xmlns="http://www.w3.org/2000/svg"><text x="20" y="40">This is a drawing.</text></svg>'
    changed = [figure._replace(shape=ANOTHER[figure.shape], colour=NEXT[figure.colour]) for figure in figures]
    return document(changed, rng)


def drawings(seed: int, right: int, nearly: int, bad: int) -> Iterator[tuple[str, str, dict[str, Any], str]]:
    """What is drawn and asked for, the truth, the rule with its arguments, and the SVG."""
    rng = random.Random(f"drawings/{seed}")
    generated = problems.generate(right, "train", seed)
    for number, problem in enumerate(generated):
        drawing = problem.meta["drawing"]
        yield problem.question, "right", drawing, document(as_asked(drawing, rng), rng)
        if number < nearly:
            fault = FAULTS[(number // 5 + number) % len(FAULTS)]
            figures = spoiled(as_asked(drawing, rng), drawing, fault)
            yield f"{problem.question}: {fault}", "nearly", drawing, document(figures, rng)
        if number < bad:
            kind = WRONG[(number // 5 + number) % len(WRONG)]
            yield f"{problem.question}: {kind}", "wrong", drawing, wrong(as_asked(drawing, rng), kind, rng)
