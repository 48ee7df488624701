"""The self-contained HTML page: one file that asks the network for nothing, with everything in it escaped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from analysis.pages import content_policy, table_texts
from analysis.statistics.accuracy_rows import BASE_MARKS, ROW_MARKS
from system.text_safety import clipped, visible

TEMPLATES = Path(__file__).with_name("templates")
INTERVAL = re.compile(r"\[[−+\d.]+, [−+\d.]+\]( [▲▼≈↑↓]+)?|\([^()]{1,20}\)( †)?")


def inline_svg(svg: str, name: str, label: str) -> Markup:
    """Prepare the SVG of a figure for use inside a page.

    Args:
        svg: as Matplotlib writes it. It numbers ids from the start in each file, so that two figures on a page would
            share clip paths.
        name: of the figure, with which ids are made unique.
        label: for screen readers.
    """
    body = svg[svg.index("<svg") :]
    body = content_policy.without_styles(re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL))
    body = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', body)
    body = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", body)
    opening, rest = body.split(">", 1)
    opening = re.sub(r'\s(?:width|height|version)="[^"]*"', "", opening)
    label = Markup.escape(visible(label))
    return Markup(f'{opening.replace("<svg", "<svg role=img", 1)} aria-label="{label}">{rest}')


def _visible(value: Any) -> Any:
    """Applied to every value that a template writes, before it is escaped."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def css(*more: str) -> Markup:
    """The style sheet of all pages, and those of some."""
    return Markup("").join(Markup((TEMPLATES / name).read_text(encoding="utf-8")) for name in ("report.css", *more))


def script(*names: str) -> Markup:
    """Scripts of a page, in order."""
    return Markup("\n").join(Markup((TEMPLATES / name).read_text(encoding="utf-8")) for name in names)


def environment(*folders: Path) -> jinja2.Environment:
    """Jinja with everything escaped and undefined names as errors.

    Args:
        folders: with templates of their own, which may include those of all pages.
    """
    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, TEMPLATES]), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=_visible,
    )  # fmt: skip
    jinja.filters |= {"percent": table_texts.percent, "points": table_texts.points}
    jinja.filters |= {"clipped": clipped, "visible": visible}
    jinja.globals |= {"BASE_MARKS": BASE_MARKS, "ROW_MARKS": ROW_MARKS}
    jinja.globals |= {"policy": content_policy.policy}
    return jinja


def of_run(table: table_texts.Table, run: str) -> dict[str, Any]:
    """The rows of one run, for the template."""
    return plain(table.display[table.display["run"] == run].drop(columns="run"))


def _unbroken(match: re.Match[str]) -> str:
    return match[0].replace(" ", "\N{NO-BREAK SPACE}")


def plain(frame: pd.DataFrame) -> dict[str, Any]:
    """A table of texts for the template. Rows that start a new group (a new value in the first column) are marked.

    Intervals and texts in brackets are not broken over lines.
    """
    first = frame.iloc[:, 0].ne(frame.iloc[:, 0].shift())
    first &= not first.all()
    rows = [
        {"cells": [INTERVAL.sub(_unbroken, str(cell)) for cell in row], "first": bool(starts) and position > 0}
        for position, (row, starts) in enumerate(zip(frame.itertuples(index=False), first, strict=True))
    ]
    return {"columns": list(frame.columns), "rows": rows}
