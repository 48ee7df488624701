"""Markdown tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from system.text_safety import markdown_text


def table(columns: Sequence[object], rows: Iterable[Sequence[object]], bold: Collection[int] = ()) -> str:
    """A Markdown table, with a line feed at its end. Markup, HTML and line breaks in cells are escaped.

    Args:
        columns: names of the columns.
        rows: the cells of each row; Markdown (system.text_safety) is kept.
        bold: positions of the rows in bold.
    """

    def line(cells: Iterable[object], mark: str = "") -> str:
        texts = (markdown_text(cell if isinstance(cell, str) else str(cell)) for cell in cells)
        return "| " + " | ".join(f"{mark}{text}{mark}" if text else text for text in texts) + " |\n"

    body = (line(row, "**" if position in bold else "") for position, row in enumerate(rows))
    return line(columns) + line(["---"] * len(columns)) + "".join(body)
