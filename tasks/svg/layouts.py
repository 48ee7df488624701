"""Figures of given shapes, colours and numbers, and how they lie: the rule of the prompts by template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tasks.svg import colours, shapes
from tasks.svg.regions import Part, Picture

Groups = Sequence[Sequence[Part]]


def figures(picture: Picture, figures: Sequence[Mapping[str, Any]], layout: str = "") -> bool:
    """Some figures of given shapes, colours and numbers, and where they are; nothing else is drawn.

    Args:
        picture: the picture.
        figures: each with shape, colour and count; the first is above or left of the second.
        layout: a key of LAYOUTS, or empty.
    """
    groups = [
        [
            part
            for part in picture.parts
            if shapes.SHAPES[one["shape"]](part) and colours.has_colour(picture, part, one["colour"])
        ]
        for one in figures
    ]
    if sum(one["count"] for one in figures) != len(picture.parts):
        return False
    if any(len(group) != one["count"] for group, one in zip(groups, figures, strict=True)):
        return False
    return not layout or LAYOUTS[layout](picture, groups)


def _lies_within(picture: Picture, left: float, top: float, right: float, bottom: float, part: Part) -> bool:
    """Whether a part is inside a share of the picture, but for a twentieth of it."""
    height, width = picture.inked.shape
    box = part.box
    return bool(
        box[0] >= (left - 0.05) * width
        and box[1] >= (top - 0.05) * height
        and box[2] <= (right + 0.05) * width
        and box[3] <= (bottom + 0.05) * height
    )


def _lies_in_quarter(left: float, top: float) -> Callable[[Picture, Groups], bool]:
    return lambda picture, groups: _lies_within(picture, left, top, left + 0.5, top + 0.5, groups[0][0])


def _lies_in_middle(picture: Picture, groups: Groups) -> bool:
    """Whether the middle of the figure's box, or its centre of gravity, is the picture's."""
    height, width = picture.inked.shape
    (part,) = groups[0]
    box = part.box
    middles = (((box[0] + box[2]) / 2, (box[1] + box[3]) / 2), part.centre)
    return any(abs(x / width - 0.5) < 0.06 and abs(y / height - 0.5) < 0.06 for x, y in middles)


def _is_row(_: Picture, groups: Groups) -> bool:
    return shapes.are_in_a_row(sorted(groups[0], key=lambda part: part.centre[0]))


def _is_column(_: Picture, groups: Groups) -> bool:
    ordered = sorted(groups[0], key=lambda part: part.centre[1])
    return all(
        abs(one.centre[0] - ordered[0].centre[0]) < 0.15 * ordered[0].width
        and abs(one.height / ordered[0].height - 1) < 0.15
        for one in ordered
    ) and all(upper.box[3] <= lower.box[1] for upper, lower in pairwise(ordered))


def _is_above(_: Picture, groups: Groups) -> bool:
    (one,), (other,) = groups
    return one.box[3] <= other.box[1] + 2 and one.box[0] < other.box[2] and other.box[0] < one.box[2]


def _is_left(_: Picture, groups: Groups) -> bool:
    (one,), (other,) = groups
    return one.box[2] <= other.box[0] + 2 and one.box[1] < other.box[3] and other.box[1] < one.box[3]


def _is_mirrored(picture: Picture, _: Groups) -> bool:
    """Whether the picture is its own mirror image, left and right, up to a twentieth of what is drawn."""
    return bool((picture.inked ^ picture.inked[:, ::-1]).sum() <= 0.05 * picture.inked.sum())


LAYOUTS: dict[str, Callable[[Picture, Groups], bool]] = {
    "top left": _lies_in_quarter(0, 0),
    "top right": _lies_in_quarter(0.5, 0),
    "bottom left": _lies_in_quarter(0, 0.5),
    "bottom right": _lies_in_quarter(0.5, 0.5),
    "middle": _lies_in_middle,
    "row": _is_row,
    "column": _is_column,
    "above": _is_above,
    "left": _is_left,
    "mirrored": _is_mirrored,
}
