"""What shape a part has: by the corners of its silhouette, or by how well an ellipse or two bars cover it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from tasks.svg.regions import Mask, Part, Points, angle_between

SIDES, ANGLES = 0.07, 5.0  # a regular polygon: share of the mean by which a side may differ; degrees of an angle
PARALLEL, OBLIQUE = 4.0, 7.0  # degrees between sides that are parallel at most, and that are not at least
COVERED = 0.975  # of silhouette and shape together, what both have: an ellipse
ROUND, LONG = 1.05, 1.08  # longer over shorter axis: of a circle at most, of another ellipse at least
TIPS, NOTCHES = 0.13, 0.25  # a star: shares of the mean by which outer and inner corners may differ in distance


def side_vectors(part: Part) -> Points:
    """The vectors from each corner to the next, of shape (corners, 2)."""
    return np.asarray(np.roll(part.corners, -1, axis=0) - part.corners)


def turn_angles(part: Part) -> Points:
    """How far the outline turns at each corner, in degrees: positive where it is convex."""
    along = side_vectors(part)
    before = np.roll(along, 1, axis=0)
    crossed = before[:, 0] * along[:, 1] - before[:, 1] * along[:, 0]
    return np.asarray(np.degrees(np.arctan2(crossed, (before * along).sum(1))))


def is_polygon(part: Part, corners: int) -> bool:
    """A convex polygon with so many corners."""
    return len(part.corners) == corners and bool((turn_angles(part) > 0).all())


def is_regular(part: Part, corners: int) -> bool:
    """A convex polygon with equal sides and angles."""
    if not is_polygon(part, corners):
        return False
    lengths = np.hypot(*side_vectors(part).T)
    equal = np.abs(lengths / lengths.mean() - 1).max() <= SIDES
    return bool(equal and np.abs(turn_angles(part) - 360 / corners).max() <= ANGLES)


def is_rectangle(part: Part) -> bool:
    """Four right angles and sides along the picture's; corners may be rounded a little."""
    return part.area >= 0.94 * part.width * part.height


def is_square(part: Part) -> bool:
    """A rectangle with equal sides, turned or not."""
    upright = is_rectangle(part) and abs(part.width / part.height - 1) <= SIDES
    return upright or is_regular(part, 4)


def is_trapezoid(part: Part) -> bool:
    """Four corners, and exactly one pair of parallel sides."""
    if not is_polygon(part, 4):
        return False
    directions = np.degrees(np.arctan2(*side_vectors(part).T[::-1])) % 180
    between = sorted(angle_between(one, other, 180) for one, other in zip(directions[:2], directions[2:], strict=True))
    return bool(between[0] <= PARALLEL and between[1] >= OBLIQUE)


def ellipse_axes(part: Part) -> tuple[float, float] | None:
    """The half axes of the ellipse that the silhouette is, the longer first; None if it is no ellipse."""
    y, x = np.nonzero(part.silhouette)
    points = np.stack([x, y]) - np.array([[part.centre[0]], [part.centre[1]]])
    values, vectors = np.linalg.eigh(points @ points.T / points.shape[1])
    short, long = 2 * np.sqrt(np.maximum(values, 0.25))
    rows, columns = np.indices(part.silhouette.shape)
    across, along = np.tensordot(vectors.T, np.stack([columns - part.centre[0], rows - part.centre[1]]), 1)
    ideal: Mask = (across / short) ** 2 + (along / long) ** 2 <= 1
    both, either = (ideal & part.silhouette).sum(), (ideal | part.silhouette).sum()
    return (float(long), float(short)) if both >= COVERED * either and len(part.corners) > 6 else None


def is_circle(part: Part) -> bool:
    """An ellipse with equal axes."""
    half_axes = ellipse_axes(part)
    return half_axes is not None and half_axes[0] <= ROUND * half_axes[1]


def is_ellipse(part: Part) -> bool:
    """An ellipse that is no circle."""
    half_axes = ellipse_axes(part)
    return half_axes is not None and half_axes[0] >= LONG * half_axes[1]


def is_star(part: Part, tips: int, ratios: tuple[float, float] = (0.2, 0.72)) -> bool:
    """A star with so many equal tips at equal angles.

    Args:
        part: whose silhouette it is.
        tips: how many.
        ratios: of inner to outer radius, the least and the most.
    """
    if len(part.corners) != 2 * tips:
        return False
    away = part.corners - part.corners.mean(0)
    distances = np.hypot(*away.T)
    first = int(distances.argmax()) % 2
    outer, inner = distances[first::2], distances[1 - first :: 2]
    turns = np.diff(np.unwrap(np.arctan2(*away.T[::-1]))) * 180 / np.pi
    return bool(
        np.abs(outer / outer.mean() - 1).max() <= TIPS
        and np.abs(inner / inner.mean() - 1).max() <= NOTCHES
        and ratios[0] <= inner.mean() / outer.mean() <= ratios[1]
        and np.abs(turns - 180 / tips).max() <= 60 / tips
    )


def is_cross(part: Part, equal: bool = False) -> bool:
    """An upright bar and a level one that cross, and nothing else.

    Args:
        part: whose silhouette it is.
        equal: whether all four arms have to be equally long.
    """
    left, top, right, bottom = part.box
    inside = part.silhouette[top:bottom, left:right]
    columns, rows = inside.sum(0) > 0.85 * part.height, inside.sum(1) > 0.85 * part.width
    if not columns.any() or not rows.any() or columns.mean() > 0.5 or rows.mean() > 0.5:
        return False
    bars = columns[None, :] | rows[:, None]
    if (bars & inside).sum() < 0.93 * (bars | inside).sum():
        return False
    x, y = np.flatnonzero(columns).mean() / part.width, np.flatnonzero(rows).mean() / part.height
    if equal:
        return bool(abs(x - 0.5) < 0.06 and abs(y - 0.5) < 0.06 and abs(part.width / part.height - 1) < 0.15)
    level = float(rows.mean()) / 2
    return bool(abs(x - 0.5) < 0.06 and level + 0.06 < y < 0.56 and part.height > 0.9 * part.width)


def are_in_a_row(ordered: Sequence[Part]) -> bool:
    """Side by side at one height, of about one size."""
    return all(
        abs(one.centre[1] - ordered[0].centre[1]) < 0.15 * ordered[0].height
        and abs(one.height / ordered[0].height - 1) < 0.15
        and abs(one.width / ordered[0].width - 1) < 0.15
        for one in ordered
    ) and all(left.box[2] <= right.box[0] for left, right in pairwise(ordered))


SHAPES: dict[str, Callable[[Part], bool]] = {
    "circle": is_circle,
    "square": is_square,
    "triangle": lambda part: is_regular(part, 3),
    "regular pentagon": lambda part: is_regular(part, 5),
    "regular hexagon": lambda part: is_regular(part, 6),
    "star": lambda part: is_star(part, 5),
}
