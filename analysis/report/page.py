"""The self-contained HTML page: one file, no network, no scripts, everything in it escaped."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from analysis import table_export
from analysis.report import provenance_summary, sample_pairs
from analysis.report.accuracy import MARKS, STEPS
from analysis.text_safety import clipped, visible

TEMPLATES = Path(__file__).parent.with_name("templates")
INTERVAL = re.compile(r"\[[−+\d.]+, [−+\d.]+\]( [▲▼≈↑↓]+)?|\([^()]{1,20}\)( †)?")
CAPTIONS = Path(__file__).parent.with_name("captions")


def inline_svg(svg: str, name: str, label: str) -> Markup:
    """A figure's SVG for use inside a page: ids made unique by the figure's name, a label for screen readers.

    Matplotlib numbers its ids from the start in each file, so that two figures in one page would share clip paths.
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', body)
    body = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", body)
    opening, rest = body.split(">", 1)
    opening = re.sub(r'\s(?:width|height|version)="[^"]*"', "", opening)
    label = Markup.escape(visible(label))
    return Markup(f'{opening.replace("<svg", "<svg role=img", 1)} aria-label="{label}">{rest}')


def caption(name: str, kind: str = "figures") -> str:
    """What to look at in a figure or table (`kind` is figures or tables); the same file serves Snakemake's report."""
    text = (CAPTIONS / f"{kind}.rst").read_text(encoding="utf-8")
    template = jinja2.Template(text, undefined=jinja2.StrictUndefined)
    return " ".join(template.render(snakemake={"wildcards": {"name": name}}).split())


def _shown(value: Any) -> Any:
    """Every text that the template writes passes here before it is escaped."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def environment() -> jinja2.Environment:
    """Jinja with escaping on for everything, and an undefined name an error."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_shown,
    )  # fmt: skip
    made.filters |= {
        "percent": table_export.percent,
        "points": table_export.points,
        "clipped": clipped,
        "visible": visible,
    }
    made.globals |= {
        "MARKS": MARKS,
        "STEPS": STEPS,
        "choose_samples": sample_pairs.choose,
        "stages": provenance_summary.stages,
    }
    return made


def render(context: Mapping[str, Any]) -> str:
    """The page's HTML."""
    css = Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))
    return environment().get_template("report.html.j2").render(**context, css=css, number=itertools.count(1).__next__)


def of_run(table: table_export.Table, run: str) -> dict[str, Any]:
    """One run's rows of a table, for the template."""
    return plain(table.shown[table.shown["run"] == run].drop(columns="run"))


def _unbroken(found: re.Match[str]) -> str:
    return found[0].replace(" ", "\N{NO-BREAK SPACE}")


def plain(frame: pd.DataFrame) -> dict[str, Any]:
    """A table of texts, for the template: a row that opens a new group of several (by its first column) is marked.

    Intervals, and what stands in brackets, are not broken over lines.
    """
    first = frame.iloc[:, 0].ne(frame.iloc[:, 0].shift())
    first &= not first.all()
    rows = [
        {"cells": [INTERVAL.sub(_unbroken, str(cell)) for cell in row], "first": bool(opens) and position > 0}
        for position, (row, opens) in enumerate(zip(frame.itertuples(index=False), first, strict=True))
    ]
    return {"columns": list(frame.columns), "rows": rows}
