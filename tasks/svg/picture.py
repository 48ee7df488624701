"""A drawing as a picture for pages: pixels alone, so that nothing that a model wrote reaches a page."""

from __future__ import annotations

import base64
import struct

from tasks.problems import Problem
from tasks.svg import render


def plot_answer(answer: str, problem: Problem) -> str | None:
    """An SVG that holds the PNG of the drawing; None if it cannot be drawn."""
    image = png(answer)
    if image is None:
        return None
    width, height = struct.unpack(">II", image[16:24])  # of the PNG's header
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<rect width="{width}" height="{height}" fill="#fff"/><image width="{width}" height="{height}" '
        f'href="data:image/png;base64,{base64.b64encode(image).decode()}"/></svg>'
    )


def png(answer: str) -> bytes | None:
    """The drawing as a PNG; None if it cannot be drawn."""
    return render.png_within_limits(answer)
