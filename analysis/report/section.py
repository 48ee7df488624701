"""A section of the report: its tables, figures, captions and text, in one file of analysis/report/sections/."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

from analysis.pages.table_texts import Table
from analysis.report.report_data import ReportData


@dataclass(frozen=True)
class Content:
    """What a section shows.

    Attributes:
        tables: written to tables/, and shown where the text asks for them.
        figures: likewise, by name, to figures/.
        values: whatever else the text names.
    """

    tables: Sequence[Table] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A part of the page. Its module has it in SECTION, and is found by being in analysis/report/sections/.

    Attributes:
        order: sections are shown by it, ascending.
        content: makes what it shows; None leaves the section out.
        text: Jinja, everything escaped, with the macros of parts.html.j2, `report` (ReportData) and the content's
            values. `{{ figure(name) }}` shows a figure, `{{ table(name, caption, text_columns, run) }}` a table, if
            there is one. (caption: if another than in `tables`; text_columns: so many first columns hold text; run:
            whose rows alone.)
        tables: captions of the tables, by name. A name with a dash at its end stands for all that begin with it.
        figures: captions of the figures, by name.
        numbers: by figure, the table that has its numbers.
        title: of the section; without one, this continues the section before it.
        anchor: of a section with a title.
        link: its entry in the table of contents, if not the title.
        page: whether it is a page of its own, `<anchor>.html` beside index.html, which the contents link.
    """

    order: int
    content: Callable[[ReportData], Content | None]
    text: str
    tables: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    anchor: str = ""
    link: str = ""
    page: bool = False
