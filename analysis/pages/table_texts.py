"""Write a table as CSV for programs, and as Markdown, LaTeX and HTML for readers."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from pandas.io.formats.style import Styler
from pandas.io.formats.style_render import CSSDict

from analysis.pages.content_policy import policy
from eval.statistics import Estimate
from system.markdown import table
from system.text_safety import visible

LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$",
    "≈": r"$\approx$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "−": "$-$", "×": r"$\times$", "–": "--",
    "…": r"\dots{}", "±": r"$\pm$", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t")  # what a spreadsheet runs begins with one of them
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
CSS: list[CSSDict] = [
    {"selector": "", "props": "border-collapse: collapse; font: 13px/1.4 system-ui, sans-serif"},
    {
        "selector": "th, td",
        "props": "padding: .3rem .7rem; text-align: left; white-space: nowrap; border-bottom: 1px solid #dfe2e6",
    },
]


@dataclass(frozen=True)
class Table:
    """A table in two forms with the same rows: `data` has plain numbers, `display` has text for readers.

    `bold` are the positions of the rows in bold.
    """

    name: str
    data: pd.DataFrame
    display: pd.DataFrame
    bold: tuple[int, ...] = ()


def percent(value: float, digits: int = 1) -> str:
    """A fraction in percent, or a dash for NaN. Zero has no sign, even where rounding made it negative."""
    return "–" if math.isnan(value) else f"{100 * value:z.{digits}f}"


def points(value: float) -> str:
    """A difference of fractions in percentage points, with a sign (a minus, not a hyphen) unless it is zero."""
    text = f"{100 * value:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", "−")


def interval_text(estimate: Estimate, form: Callable[[float], str]) -> str:
    """A value and its interval as text, such as `75.2 [71.2, 78.8]`. `form` writes a number."""
    return f"{form(estimate.value)} [{form(estimate.low)}, {form(estimate.high)}]"


def interval_columns(estimates: Mapping[str, Estimate | None]) -> dict[str, float]:
    """Columns of data for estimates: each one's value, low and high; limits that there are none of stay empty."""
    columns: dict[str, float] = {}
    for name, part in estimates.items():
        if part:
            low, high = (limit if math.isfinite(limit) else math.nan for limit in (part.low, part.high))
            columns |= {name: part.value, f"{name}_low": low, f"{name}_high": high}
    return columns


def markdown(frame: pd.DataFrame, bold: Sequence[int] = ()) -> str:
    """A Markdown table, with some rows in bold."""
    return table(list(frame.columns), frame.itertuples(index=False), bold)


def html_text(cell: object) -> str:
    """A cell for HTML, escaped."""
    return html.escape(visible(str(cell)))


def latex_text(cell: object) -> str:
    """A cell for LaTeX. Every character with a meaning in LaTeX is escaped."""
    return " ".join("".join(LATEX.get(character, character) for character in visible(str(cell))).split())


def csv_value(cell: object) -> object:
    """A cell for CSV. Text has no control codes, and none that a spreadsheet takes for a formula: that gets a `'`."""
    if not isinstance(cell, str):
        return cell
    text = visible(cell)
    return f"'{text}" if text[:1] in FORMULA and not NUMBER.fullmatch(text) else text


def _styler(table: Table, escape: Callable[[object], str], **bold: str) -> Styler:
    styler = Styler(table.display, uuid="table", cell_ids=False).hide(axis="index")
    styler.format(escape).format_index(escape, axis="columns")
    return styler.set_properties(subset=(list(table.bold), slice(None)), **bold)


def html_page(table: Table) -> str:
    """A page with only the table."""
    styler = _styler(table, html_text, **{"font-weight": "bold"}).set_table_styles(CSS)
    page = styler.to_html(doctype_html=True)
    head = page.partition("</head>")[0]  # before any cell
    style = head.partition('<style type="text/css">')[2].partition("</style>")[0]
    return page.replace("<head>", f"<head>\n{policy([style])}", 1)


def latex(table: Table) -> str:
    """A LaTeX tabular for booktabs and amssymb. \\input it inside a table environment."""
    texts = table.display
    numeric = [all(re.match(r"[\d.,+−–-]|$", str(cell)) for cell in texts[name]) for name in texts.columns]
    columns = "".join("r" if is_number else "l" for is_number in numeric)
    return _styler(table, latex_text, textbf="--rwrap").to_latex(hrules=True, column_format=columns)


def write(table: Table, folder: Path) -> None:
    """Write `<name>.csv`, `<name>.md`, `<name>.tex` and `<name>.html`."""
    folder.mkdir(parents=True, exist_ok=True)
    data = table.data.map(csv_value)
    data.to_csv(folder / f"{table.name}.csv", index=False, float_format="%.6g", errors="backslashreplace")
    for suffix, text in (
        (".md", markdown(table.display, table.bold)),
        (".tex", latex(table)),
        (".html", html_page(table)),
    ):
        (folder / f"{table.name}{suffix}").write_text(text, encoding="utf-8", errors="backslashreplace")
