"""What a rendered drawing shows: its ground, its parts, their outlines and corners, and their colours.

A part is what hangs together and is not ground. Its silhouette has no holes, so that an outline and a filled shape have
the same one. All coordinates are pixels, x to the right and y downwards.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy import ndimage

from tasks.svg import render

SIDE = 512  # what is judged has as many pixels as a square of this side
CONTRAST = 24  # of 255: a pixel whose red, green or blue differs by more from the ground's is no ground
SMALLEST = 0.01  # of the largest part's silhouette: what is smaller is no part
CORNER = 0.02  # of a silhouette: the area that a corner has to cut off
NEAR = 0.06  # of the root of a silhouette's area: how far apart corners are
MEETING = 0.3  # of the distance of two sides' middles: how far lines along them may meet from the corner
RAYS = 720
Pixels = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Points = npt.NDArray[np.float64]
_NEIGHBOURS = np.ones((3, 3), bool)


def render_pixels(svg: str) -> Pixels:
    """Red, green and blue of a drawing on white, of shape (height, width, 3); see render.png for errors."""
    with Image.open(io.BytesIO(render.png(svg))) as image:
        rgba = image.convert("RGBA")
    return np.asarray(Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba).convert("RGB"))


@dataclass(frozen=True)
class Part:
    """A part of a picture: its own pixels and its silhouette, both as large as the picture."""

    own: Mask
    silhouette: Mask

    @cached_property
    def area(self) -> int:
        """Pixels of the silhouette."""
        return int(self.silhouette.sum())

    @cached_property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom; right and bottom are just outside."""
        rows, columns = np.flatnonzero(self.silhouette.any(1)), np.flatnonzero(self.silhouette.any(0))
        return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1

    @property
    def width(self) -> int:
        """Of the box."""
        return self.box[2] - self.box[0]

    @property
    def height(self) -> int:
        """Of the box."""
        return self.box[3] - self.box[1]

    @cached_property
    def centre(self) -> tuple[float, float]:
        """The centre of gravity of the silhouette."""
        y, x = np.nonzero(self.silhouette)
        return float(x.mean()), float(y.mean())

    @cached_property
    def outline(self) -> Points:
        """The outermost point of the silhouette in each of RAYS directions from its centre, of shape (RAYS, 2)."""
        angles = np.arange(RAYS) * 2 * np.pi / RAYS
        steps = np.arange(0, np.hypot(self.width, self.height), 0.5)
        x = self.centre[0] + np.outer(np.cos(angles), steps)
        y = self.centre[1] + np.outer(np.sin(angles), steps)
        inside = sample_pixels(self.silhouette, x, y, False)
        last = steps[steps.size - 1 - np.argmax(inside[:, ::-1], axis=1)] * inside.any(axis=1)
        return np.stack([self.centre[0] + last * np.cos(angles), self.centre[1] + last * np.sin(angles)], axis=1)

    @cached_property
    def corners(self) -> Points:
        """The corners of the outline, of shape (corners, 2): where lines along its sides meet.

        Sides are between the points that are left when those that cut off little are dropped, one after the other.
        Where the lines meet, the same is asked again: beside a notch or a tip two points may be left for one corner.
        """
        kept = list(range(RAYS))
        areas = [_area_cut_off(*self.outline[[at - 1, at, (at + 1) % RAYS]]) for at in kept]
        while len(kept) > 3:
            at = areas.index(min(areas))
            near = self.outline[kept[at]] - self.outline[[kept[at - 1], kept[(at + 1) % len(kept)]]]
            if areas[at] >= CORNER * self.area and np.hypot(*near.T).min() >= NEAR * self.area**0.5:
                break
            del kept[at], areas[at]
            for index in (at - 1, at % len(kept)):
                near_by = [kept[index - 1], kept[index], kept[(index + 1) % len(kept)]]
                areas[index] = _area_cut_off(*self.outline[near_by])
        while True:
            points = self._meetings(kept)
            cuts = np.array(
                [_area_cut_off(points[at - 1], points[at], points[(at + 1) % len(points)]) for at in range(len(points))]
            )
            lengths = np.hypot(*(np.roll(points, -1, axis=0) - points).T)
            pair = [int(lengths.argmin()), (int(lengths.argmin()) + 1) % len(kept)]
            if len(kept) > 3 and cuts.min() < CORNER * self.area:
                del kept[int(cuts.argmin())]
            elif len(kept) > 3 and lengths.min() < NEAR * self.area**0.5:
                del kept[min(pair, key=cuts.__getitem__)]
            else:
                return points

    def _meetings(self, kept: list[int]) -> Points:
        """Where the lines along the sides between these points of the outline meet."""
        lines = [self._line(one, other) for one, other in zip(kept, [*kept[1:], kept[0]], strict=True)]
        return np.array(
            [_meeting_point(lines[index - 1], lines[index], self.outline[at]) for index, at in enumerate(kept)]
        )

    def _line(self, start: int, end: int) -> tuple[Points, Points]:
        """A point and the direction of the line along a side of the outline, without its ends."""
        count = (end - start) % RAYS
        inside = np.arange(start + count // 6, start + count - count // 6 + 1) % RAYS
        points = self.outline[inside if len(inside) > 3 else [start, end]]
        middle = points.mean(0)
        return middle, np.linalg.svd(points - middle)[2][0]

    def eroded(self, share: float) -> Mask:
        """The silhouette without its rim, whose width is that share of the root of its area."""
        inner: Mask = ndimage.distance_transform_edt(self.silhouette) > max(share * self.area**0.5, 1)
        return inner


def _area_cut_off(before: Points, at: Points, after: Points) -> float:
    """The area that a point of an outline adds to it."""
    (x, y), (u, v) = before - at, after - at
    return float(abs(x * v - y * u) / 2)


def _meeting_point(one: tuple[Points, Points], other: tuple[Points, Points], near: Points) -> Points:
    """Where two lines meet, if that is near a point; else the point."""
    (start, along), (end, across) = one, other
    turn = along[0] * across[1] - along[1] * across[0]
    if abs(turn) < 0.1:
        return near
    away = end - start
    met = start + along * (away[0] * across[1] - away[1] * across[0]) / turn
    return met if np.hypot(*(met - near)) <= MEETING * np.hypot(*(start - end)) else near


def sample_pixels(values: npt.NDArray[Any], x: Points, y: Points, outside: Any) -> npt.NDArray[Any]:
    """The values at the pixels of some points, and another value outside the picture."""
    column, row = np.rint(x).astype(int), np.rint(y).astype(int)
    height, width = values.shape[:2]
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    sampled: npt.NDArray[Any] = values[row.clip(0, height - 1), column.clip(0, width - 1)]
    sampled[~inside] = outside
    return sampled


class Picture:
    """A rendered drawing.

    Attributes:
        rgb: of shape (height, width, 3).
        ground: the colour that most of the picture's edge has.
        inked: the pixels that differ from it.
    """

    def __init__(self, rgb: Pixels) -> None:
        """Find the ground and what is not ground."""
        self.rgb = rgb
        edge = np.concatenate([rgb[0], rgb[-1], rgb[:, 0], rgb[:, -1]])
        colours, counts = np.unique(edge, axis=0, return_counts=True)
        self.ground = colours[counts.argmax()]
        self.inked: Mask = differs_from(rgb, self.ground)

    @cached_property
    def parts(self) -> list[Part]:
        """The parts, the largest first."""
        return find_parts(self.inked)

    @cached_property
    def box(self) -> Mask:
        """What is inked, cut to the box around it; empty if nothing is."""
        rows, columns = np.flatnonzero(self.inked.any(1)), np.flatnonzero(self.inked.any(0))
        return self.inked[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] if len(rows) else self.inked[:0]

    @property
    def only(self) -> Part | None:
        """The part, if there is one alone."""
        return self.parts[0] if len(self.parts) == 1 else None

    def around(self, centre: tuple[float, float], radius: float) -> Pixels:
        """The colours on a circle, of shape (RAYS, 3): the first at the right, then clockwise; ground outside."""
        angles = np.arange(RAYS) * 2 * np.pi / RAYS
        x, y = centre[0] + radius * np.cos(angles), centre[1] + radius * np.sin(angles)
        return sample_pixels(self.rgb, x, y, self.ground)


def differs_from(colours: Pixels, other: npt.ArrayLike, by: int = CONTRAST) -> Mask:
    """Which colours differ from another one, in red, green or blue."""
    far: Mask = (np.abs(colours.astype(int) - np.asarray(other, int)) > by).any(-1)
    return far


def find_parts(inked: Mask) -> list[Part]:
    """What hangs together, the largest silhouette first; what is inside a silhouette belongs to it."""
    filled = ndimage.binary_fill_holes(inked)
    numbers, count = ndimage.label(filled, _NEIGHBOURS)
    components = [Part(inked & (numbers == number), numbers == number) for number in _largest_labels(numbers, count)]
    return [part for part in components if part.area >= SMALLEST * components[0].area]


def _largest_labels(numbers: npt.NDArray[np.int32], count: int, most: int = 60) -> list[int]:
    sizes = np.bincount(numbers.ravel(), minlength=count + 1)[1:]
    return [int(index) + 1 for index in np.argsort(-sizes, kind="stable")[:most]]


def true_runs(row: Mask) -> list[tuple[int, int]]:
    """Start and end (just outside) of each run of True in a row."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def true_arcs(circle: Mask) -> list[tuple[float, float]]:
    """Middle and width, in degrees, of each run of True on a circle of RAYS; one run if all are True."""
    if circle.all():
        return [(0.0, 360.0)]
    start = int(np.argmin(circle))
    degree = 360 / len(circle)
    return [
        ((start + (low + high - 1) / 2) * degree % 360, (high - low) * degree)
        for low, high in true_runs(np.roll(circle, -start))
    ]


def angle_between(one: float, other: float, turn: float = 360) -> float:
    """How far apart two angles are, up to half a turn."""
    return abs((one - other + turn / 2) % turn - turn / 2)
