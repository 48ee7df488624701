"""Build the report: tables, figures, the sample browser, and the page that shows them section by section."""

from __future__ import annotations

import importlib
import itertools
import json
import pkgutil
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
from jinja2.runtime import Macro
from markupsafe import Markup

from analysis.pages import figure_style, page, table_texts
from analysis.report import sample_browser, sections
from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.results import RunResults, check_one_measurement
from contracts import provenance
from system import background_fork, durable

CAPTION = (
    "{% set name = snakemake.wildcards.name %}{% set captions = ALL %}"
    "{{ captions[name] if name in captions else captions[name.partition('-')[0] + '-'] }}\n"
)


def sections_in_order() -> list[Section]:
    """The SECTION of every module in sections/, in the order of the page."""
    names = [module.name for module in pkgutil.iter_modules(sections.__path__, f"{sections.__name__}.")]
    return sorted((importlib.import_module(name).SECTION for name in names), key=lambda section: section.order)


def report(results: Sequence[RunResults], output: Path, title: str, scale: str, overlap: Path | None = None) -> Path:
    """Write tables/, figures/, samples/, index.html, and the sections that are pages of their own.

    Args:
        results: what load_results read, at least one run with samples.
        output: folder to write to.
        title: of the page.
        scale: one of contracts.run_file.SCALES, shown on the page.
        overlap: the CSV table of tasks.overlap, if there is one.

    Returns:
        The path of the page.

    Raises:
        UserError: checkpoints of a run were measured in different ways.
    """
    data = ReportData.of_runs(results, title, scale, overlap)
    for run in data.runs:
        check_one_measurement(run)
    browser_written = _start_slow_work(data, output)
    pages = _pages(data, output)
    browser_written()
    for folder in ("tables", "samples", "figures"):
        durable.sync_tree(output / folder)
    for name, text in pages.items():
        durable.write_text(output / f"{name}.html", text)
    provenance.write(
        output,
        runs=[run.name for run in [*data.runs, *data.logs]],
        scale=scale,
        overlap_sha256=provenance.sha256(overlap) if overlap else None,  # it has no record of its own
    )
    return output / "index.html"


def _start_slow_work(data: ReportData, output: Path) -> Callable[[], int]:
    """Count keywords in a fork and wrong answers beside it; then write the sample browser in another fork.

    Returns:
        Waits for the sample browser.
    """
    counted = background_fork.start(lambda: data.pattern_counts)
    _ = data.wrong_answers
    data.__dict__["pattern_counts"] = counted()  # where cached_property keeps its value
    return background_fork.start(
        lambda: sample_browser.write(data.runs, data.keyword_lists, data.title, output / "samples")
    )


def _pages(data: ReportData, output: Path) -> dict[str, str]:
    """The HTML of the pages by name, index last. Tables and figures are written on the way."""
    environment = page.environment()
    environment.globals |= {"titles": data.titles, "report": data}
    macros = vars(environment.get_template("parts.html.j2").module)
    environment.globals |= {name: macro for name, macro in macros.items() if isinstance(macro, Macro)}
    figure_numbers = itertools.count(1)
    figure_style.set_style()
    rendered: list[tuple[Section, Markup]] = []
    for section in sections_in_order():
        if content := section.content(data):
            html = _render(section, content, environment, figure_numbers, output)
            if section.title or not rendered:
                rendered.append((section, html))
            else:
                rendered[-1] = (rendered[-1][0], rendered[-1][1] + html)
    (_, opening), *titled = rendered
    template = environment.get_template("report.html.j2")
    common = {
        "css": page.css(), "script": page.script("tables.js"), "contents": [section for section, _ in titled],
        "made_at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), "made_with": provenance.collect(),
    }  # fmt: skip
    own = {section.anchor: template.render(opening="", sections=[(section, html)], **common)
           for section, html in titled if section.page}  # fmt: skip
    on_index = [(section, html) for section, html in titled if not section.page]
    return {**own, "index": template.render(opening=opening, sections=on_index, **common)}


def _render(
    section: Section, content: Content, environment: jinja2.Environment, figure_numbers: Iterator[int], output: Path
) -> Markup:
    """Write the tables and figures of a section, and render its text."""
    macros: MutableMapping[str, Any] = environment.globals
    tables = {table.name: table for table in content.tables}
    for table in content.tables:
        table_texts.write(table, output / "tables")
    drawings = {
        name: page.inline_svg(figure_style.save(figure, output / "figures", name), name, section.figures[name])
        for name, figure in content.figures.items()
    }

    def show_figure(name: str) -> Markup:
        if name not in drawings:
            return Markup()
        caption, numbers = section.figures[name], section.numbers.get(name)
        return Markup(macros["drawing"](name, drawings[name], caption, numbers, next(figure_numbers)))

    def show_table(name: str, caption: str = "", text_columns: int = 1, run: str | None = None) -> Markup:
        if name not in tables:
            return Markup()
        rows = page.plain(tables[name].display) if run is None else page.of_run(tables[name], run)
        return Markup(macros["plain_table"](" ".join((caption or section.tables[name]).split()), rows, text_columns))

    template = environment.from_string(section.text)
    return Markup(template.render(**content.values, figure=show_figure, table=show_table))


def write_captions(folder: Path) -> None:
    """Write tables.rst and figures.rst, the captions that Snakemake's own report shows; the same for every page."""
    for kind in ("tables", "figures"):
        captions = {name: text for section in sections_in_order() for name, text in getattr(section, kind).items()}
        durable.write_text(folder / f"{kind}.rst", CAPTION.replace("ALL", json.dumps(captions, ensure_ascii=False)))
