"""A table's written forms: CSV for machines; Markdown, LaTeX and HTML for people."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from analysis.text_safety import visible

LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$",
    "≈": r"$\approx$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "−": "$-$", "×": r"$\times$", "–": "--",
    "…": r"\dots{}", "±": r"$\pm$", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip

HTML_HEAD = """<!doctype html>
<meta charset=utf-8>
<style>
table { border-collapse: collapse; font: 13px/1.4 system-ui, sans-serif; }
th, td { padding: .3rem .7rem; text-align: left; white-space: nowrap; border-bottom: 1px solid #dfe2e6; }
</style>
"""


@dataclass(frozen=True)
class Table:
    """A table in its two readings: `data` for machines, `shown` for people (text, same number of rows).

    `bold` are the positions of the rows that are set in bold.
    """

    name: str
    data: pd.DataFrame
    shown: pd.DataFrame
    bold: tuple[int, ...] = field(default=())


def percent(value: float, digits: int = 1) -> str:
    """A fraction in percent, or a dash if there is none; zero, which an interval may miss by rounding, has no sign."""
    return "–" if math.isnan(value) else f"{100 * value:z.{digits}f}"


def points(value: float) -> str:
    """A difference of fractions in percentage points, with its sign (a minus, not a hyphen; no sign on zero)."""
    text = f"{100 * value:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def markdown(frame: pd.DataFrame, bold: Sequence[int] = ()) -> str:
    """A Markdown table; a bar or a line break in a cell is escaped."""

    def line(cells: Sequence[object], mark: str = "") -> str:
        texts = (" ".join(str(cell).replace("|", "\\|").split()) for cell in cells)
        return "| " + " | ".join(f"{mark}{text}{mark}" if text else text for text in texts) + " |\n"

    rule = "| " + " | ".join("---" for _ in frame.columns) + " |\n"
    rows = enumerate(frame.itertuples(index=False))
    return line(list(frame.columns)) + rule + "".join(line(row, "**" if i in bold else "") for i, row in rows)


def html_table(frame: pd.DataFrame, bold: Sequence[int] = ()) -> str:
    """A plain HTML table, everything in it escaped."""
    head = "".join(f"<th scope=col>{html.escape(str(name))}</th>" for name in frame.columns)
    body = "".join(
        f"<tr{' style=font-weight:bold' if i in bold else ''}>"
        + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row)
        + "</tr>\n"
        for i, row in enumerate(frame.itertuples(index=False))
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"


def latex_text(text: str) -> str:
    """Text for LaTeX: what has a meaning there is escaped, whatever the text is."""
    return " ".join("".join(LATEX.get(character, character) for character in visible(text)).split())


def latex(frame: pd.DataFrame, bold: Sequence[int] = ()) -> str:
    """A LaTeX tabular for booktabs and amssymb: \\input it inside a table environment."""

    def line(cells: Sequence[object], strong: bool = False) -> str:
        texts = (latex_text(str(cell)) for cell in cells)
        return " & ".join(rf"\textbf{{{text}}}" if strong and text else text for text in texts) + " \\\\\n"

    numeric = [all(re.match(r"[\d.,+−–-]|$", str(cell)) for cell in frame[name]) for name in frame.columns]
    columns = "".join("r" if is_number else "l" for is_number in numeric)
    body = "".join(line(row, i in bold) for i, row in enumerate(frame.itertuples(index=False)))
    head = line(list(frame.columns))
    return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{head}\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n"


def write(table: Table, folder: Path) -> None:
    """Write `<name>.csv`, `<name>.md`, `<name>.tex` and `<name>.html`."""
    folder.mkdir(parents=True, exist_ok=True)
    table.data.to_csv(folder / f"{table.name}.csv", index=False, float_format="%.6g", errors="backslashreplace")
    for suffix, text in (
        (".md", markdown(table.shown, table.bold)),
        (".tex", latex(table.shown, table.bold)),
        (".html", f"{HTML_HEAD}{html_table(table.shown, table.bold)}"),
    ):
        (folder / f"{table.name}{suffix}").write_text(text, encoding="utf-8", errors="backslashreplace")
