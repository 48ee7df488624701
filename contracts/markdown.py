"""Markdown tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def table(columns: Sequence[object], rows: Iterable[Sequence[object]], bold: Collection[int] = ()) -> str:
    """A Markdown table, with a line feed at its end. Bars and line breaks in cells are escaped.

    Args:
        columns: names of the columns.
        rows: the cells of each row.
        bold: positions of the rows in bold.
    """

    def line(cells: Iterable[object], mark: str = "") -> str:
        texts = (" ".join(str(cell).replace("|", "\\|").split()) for cell in cells)
        return "| " + " | ".join(f"{mark}{text}{mark}" if text else text for text in texts) + " |\n"

    body = (line(row, "**" if position in bold else "") for position, row in enumerate(rows))
    return line(columns) + line(["---"] * len(columns)) + "".join(body)
