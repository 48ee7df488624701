"""A table for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from system.text_safety import one_line


def aligned(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Columns with two spaces between them, a line below the head; no cell breaks its line."""
    cells = [[one_line(str(cell)) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([lines[0], "─" * max(map(len, lines)), *lines[1:]])
