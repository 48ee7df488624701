"""When a drawing is what its prompt asks for: a rule for each, on the rendered picture.

A rule takes a Picture and says yes or no. Letters are not drawn, so that a rule does not depend on a machine's fonts;
what a drawing writes changes no verdict, except a clock's numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import ndimage

from tasks.svg import colours, shapes
from tasks.svg.layouts import figures
from tasks.svg.regions import RAYS, Mask, Part, Picture, angle_between, differs_from, find_parts, true_arcs, true_runs

UP, LOWER_RIGHT, LOWER_LEFT = 270, 30, 150  # degrees clockwise from the right


def hexagon(picture: Picture) -> bool:
    """Six equal sides and angles, filled or not."""
    return picture.only is not None and shapes.is_regular(picture.only, 6)


def trapezoid(picture: Picture) -> bool:
    """Four corners, exactly one pair of parallel sides."""
    return picture.only is not None and shapes.is_trapezoid(picture.only)


def dashed_square(picture: Picture) -> bool:
    """A square whose four sides are each at least three dashes with gaps between, none longer than a quarter."""
    box = picture.box
    if not box.size:
        return False
    height, width = box.shape
    if abs(width / height - 1) > shapes.SIDES:
        return False
    depths = range(max(1, round(0.03 * width)))
    return any(all(_is_dashed(side) for side in (box[d], box[-1 - d], box[:, d], box[:, -1 - d])) for d in depths)


def _is_dashed(side: Mask) -> bool:
    gaps = [high - low for low, high in true_runs(~side)]
    return len(true_runs(side)) >= 3 and len(gaps) >= 2 and max(gaps) <= len(side) / 4 and 0.15 <= side.mean() <= 0.95


def ellipse(picture: Picture) -> bool:
    """A light green ellipse that is no circle."""
    return (
        picture.only is not None
        and shapes.is_ellipse(picture.only)
        and colours.has_colour(picture, picture.only, "light green")
    )


def cross(picture: Picture) -> bool:
    """An upright bar, and a level one across its middle or above."""
    return picture.only is not None and shapes.is_cross(picture.only)


def _whole_disc(picture: Picture) -> tuple[tuple[float, float], float] | None:
    """Centre and radius of the circle that the whole drawing is."""
    part = picture.only
    if part is None or not shapes.is_circle(part):
        return None
    left, top, right, bottom = part.box
    return ((left + right - 1) / 2, (top + bottom - 1) / 2), (right - left + bottom - top) / 4


def mercedes(picture: Picture) -> bool:
    """A circle with three spokes: up, to the lower right and to the lower left."""
    disc = _whole_disc(picture)
    return disc is not None and all(_three_spokes(picture, disc[0], share * disc[1]) for share in (0.35, 0.5, 0.65))


def _three_spokes(picture: Picture, centre: tuple[float, float], radius: float) -> bool:
    around = picture.around(centre, radius)
    expected = (UP, LOWER_RIGHT, LOWER_LEFT)
    between = np.median([around[(angle + 60) % 360 * RAYS // 360] for angle in expected], axis=0)
    spokes = true_arcs(differs_from(around, between, 40))
    wide = [(middle, width) for middle, width in spokes if width >= 1.5]
    return (
        len(wide) == 3
        and all(min(angle_between(middle, angle) for middle, _ in wide) <= 8 for angle in expected)
        and max(width for _, width in wide) <= 60
    )


def bmw(picture: Picture) -> bool:
    """Quarters in blue (top left, bottom right) and white, in a ring of one other colour."""
    disc = _whole_disc(picture)
    if disc is None:
        return False
    for share in (0.2, 0.3, 0.4):
        around = picture.around(disc[0], share * disc[1])
        for middle, name in ((45, "blue"), (135, "white"), (225, "blue"), (315, "white")):
            quarter = around[(middle - 35) * RAYS // 360 : (middle + 35) * RAYS // 360]
            if colours.share_named(quarter, name) < 0.9:
                return False
    return any(_one_colour(picture.around(disc[0], share * disc[1])) for share in np.arange(0.7, 0.99, 0.02))


def _one_colour(around: np.ndarray[Any, Any]) -> bool:
    return bool((~differs_from(around, np.median(around, axis=0), 40)).mean() >= 0.7)


def ground(picture: Picture) -> bool:
    """An upright line that ends on the first of three level lines, each shorter than the one above."""
    box = picture.box
    if not box.size:
        return False
    height, width = box.shape
    stem = box[: max(1, height // 8)]
    thick = float(np.median(stem.sum(1)))
    middle = float(np.nonzero(stem)[1].mean())
    levels = [(low, high, box[low:high]) for low, high in true_runs(box.sum(1) > max(1.6 * thick, 0.05 * width))]
    if len(levels) != 3 or levels[0][0] < 0.15 * height or thick > 0.2 * width:
        return False
    wide = [int(line.any(0).sum()) for *_, line in levels]
    centred = all(abs(np.flatnonzero(line.any(0)).mean() - middle) < 0.06 * width for *_, line in levels)
    thin = all(high - low < 0.25 * height for low, high, _ in levels)
    return centred and thin and wide[0] == width and all(lower < 0.9 * upper for upper, lower in pairwise(wide))


def star(picture: Picture) -> bool:
    """A star of five tips."""
    return picture.only is not None and shapes.is_star(picture.only, 5)


def hexagram(picture: Picture) -> bool:
    """Two triangles that make a star of six tips, in purple."""
    part = picture.only
    return part is not None and shapes.is_star(part, 6, (0.45, 0.7)) and colours.has_colour(picture, part, "purple")


def prohibition(picture: Picture) -> bool:
    """A red ring with one red diagonal, on anything that is not red."""
    disc = _whole_disc(picture)
    if disc is None:
        return False
    centre, radius = disc
    ring = max(
        colours.share_named(picture.around(centre, share * radius), "red") for share in np.arange(0.8, 0.99, 0.02)
    )
    if ring < 0.9:
        return False
    for share in (0.3, 0.45, 0.6):
        bars = true_arcs(colours.pixels_named(picture.around(centre, share * radius), "red"))
        bars = [(middle, width) for middle, width in bars if width >= 2]
        if len(bars) != 2 or angle_between(bars[0][0], bars[1][0]) < 168 or max(width for _, width in bars) > 80:
            return False
        if any(abs(middle % 90 - 45) > 20 for middle, _ in bars):
            return False
    return True


def rating(picture: Picture) -> bool:
    """Five stars in a row: the first three have one filling, the last two another, or none."""
    stars = sorted(picture.parts, key=lambda part: part.centre[0])
    if len(stars) != 5 or not all(shapes.is_star(part, 5) for part in stars) or not shapes.are_in_a_row(stars):
        return False
    inside = [np.median(picture.rgb[part.eroded(0.12)], axis=0) for part in stars]
    first, last = inside[0], inside[-1]
    return bool(
        differs_from(first, picture.ground, 40)
        and differs_from(first, last, 60)
        and not any(differs_from(one, first, 40) for one in inside[:3])
        and not differs_from(inside[3], last, 40)
    )


def bars(picture: Picture, count: int) -> bool:
    """So many upright bars on one line, each higher than the one before."""
    ordered = sorted(picture.parts, key=lambda part: part.centre[0])
    if len(ordered) != count or not all(shapes.is_rectangle(part) for part in ordered):
        return False
    high = max(part.height for part in ordered)
    return (
        all(abs(part.box[3] - ordered[0].box[3]) < 0.03 * high + 2 for part in ordered)
        and all(abs(part.width / ordered[0].width - 1) < 0.15 for part in ordered)
        and all(left.box[2] <= right.box[0] and right.height > 1.1 * left.height for left, right in pairwise(ordered))
    )


def battery(picture: Picture) -> bool:
    """A box with a pole at one end, of whose inside about a fifth is red, from the other end or from this one."""
    if not picture.inked.any():
        return False
    whole = find_parts(picture.inked)[0]
    red = colours.pixels_named(picture.rgb, "red") & whole.silhouette
    rim = whole.silhouette & ~whole.eroded(0.01)
    frame = ~differs_from(picture.rgb, np.median(picture.rgb[rim], axis=0), 60)
    inside = whole.silhouette & whole.eroded(0.01) & (~frame | red)
    body = find_parts(inside)[:1] if inside.any() else []
    if (
        not body
        or not 0.1 <= (red & body[0].silhouette).sum() / body[0].area <= 0.3
        or not shapes.is_rectangle(body[0])
    ):
        return False
    rows, columns = np.nonzero(red & body[0].silhouette)
    across = (np.ptp(rows) + 1) / body[0].height, (np.ptp(columns) + 1) / body[0].width
    return bool(max(across) >= 0.7 and min(across) <= 0.4) and _has_pole(picture, body[0])


def _has_pole(picture: Picture, body: Part) -> bool:
    """Whether what is drawn gets narrower at one end of the box around it."""
    box = picture.box
    ends = (box[:, -2:], box[:, :2]) if body.width > body.height else (box[:2].T, box[-2:].T)
    shares = [np.ptp(np.flatnonzero(end.any(1))) / len(box if body.width > body.height else box.T) for end in ends]
    return bool(min(shares) < 0.75 < max(shares))


def first_aid(picture: Picture) -> bool:
    """A box, with or without a handle, and on it a cross with equal arms: white on red, or red."""
    if not picture.inked.any():
        return False
    box = find_parts(picture.inked)[0]
    if box.area < 0.7 * box.width * box.height or not 0.5 <= box.width / box.height <= 2.5:
        return False
    red = colours.pixels_named(picture.rgb, "red") & box.silhouette
    white = colours.pixels_named(picture.rgb, "white") & box.silhouette
    for mask, around in ((red, white), (white, red)):
        for part in _separate_parts(mask, box.area):
            inside = part.area < 0.4 * box.area and shapes.is_cross(part, equal=True)
            if inside and (around is white or _is_surrounded(part, around)):
                return True
    return False


def _separate_parts(mask: Mask, area: int) -> list[Part]:
    """The parts of a mask, with their holes, that are not tiny."""
    numbers, count = ndimage.label(mask)
    masks = [numbers == number for number in range(1, min(count, 40) + 1)]
    return [Part(one, one) for one in masks if one.sum() > 0.01 * area]


def _is_surrounded(part: Part, by: Mask) -> bool:
    near, far = (ndimage.binary_dilation(part.silhouette, iterations=pixels) for pixels in (2, 5))
    return bool(by[far & ~near].mean() > 0.8)


def clock(picture: Picture) -> bool:
    """A round face with twelve marks at equal angles, and two or three hands from its middle."""
    disc = _whole_disc(picture)
    if disc is None:
        return False
    centre, radius = disc
    marked = any(_twelve_marks(picture, centre, share * radius) for share in np.arange(0.6, 0.97, 0.02))
    hands = [
        [width for _, width in true_arcs(_off_face(picture, centre, share * radius)) if width >= 1]
        for share in (0.2, 0.26, 0.32)
    ]
    return marked and any(2 <= len(widths) <= 3 and max(widths) <= 40 for widths in hands)


def _off_face(picture: Picture, centre: tuple[float, float], radius: float) -> Mask:
    """Where a circle has another colour than most of it."""
    around = picture.around(centre, radius)
    return differs_from(around, np.median(around, axis=0), 40)


def _twelve_marks(picture: Picture, centre: tuple[float, float], radius: float) -> bool:
    marks = true_arcs(_off_face(picture, centre, radius))
    return 12 <= len(marks) <= 15 and all(
        min(angle_between(middle, angle) for middle, _ in marks) <= 4 for angle in range(0, 360, 30)
    )


RULES: dict[str, Callable[..., bool]] = {
    rule.__name__: rule
    for rule in (
        hexagon, trapezoid, dashed_square, ellipse, cross, mercedes, bmw, ground, star, hexagram, prohibition, rating,
        bars, battery, first_aid, clock, figures,
    )
}  # fmt: skip
WITH_NUMBERS = ("clock",)  # rules that also count letters and digits, each text as a box of its size
