"""The published figures: files of results/reference/, each with its source in its comment lines."""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from system.yaml_files import read_yaml

REFERENCE = Path(__file__).resolve().parents[1] / "results" / "reference"
PUBLISHED = REFERENCE / "report_tables.csv"  # the tables of the report that this project reproduces
FIDELITY = REFERENCE / "fidelity.yaml"  # published values, see analysis.fidelity
SCRIPTS = REFERENCE / "script_settings.yaml"  # settings of cited scripts, see analysis.script_fidelity
CLAIMS = REFERENCE / "claims.yaml"  # see analysis.claims
FIGURES = REFERENCE / "document_figures.csv"  # in the text of documents
DRAWINGS = REFERENCE / "svg_drawings.csv"
RELEASES = REFERENCE / "release_dates.yaml"  # of models and benchmarks, see analysis.report.sections.contamination
CLASSES = REFERENCE / "bad_case_classes.yaml"  # see analysis.report.sections.wrong_answer_classes
PATTERNS = (
    Path(__file__).parent / "measures" / "reasoning_patterns.yaml"
)  # the keyword lists, see analysis.measures.reasoning_patterns
OTHER_COLUMNS = ("table", "recipe", "algorithm", "checkpoint", "step", "average_as_printed")


def page_content() -> dict[str, Any]:
    """What pages show besides results: published tables, values and claims, and the keyword lists."""
    return {
        **{
            file.name: file.read_text(encoding="utf-8")
            for file in (PUBLISHED, FIDELITY, SCRIPTS, CLAIMS, FIGURES, DRAWINGS, CLASSES, RELEASES)
        },
        "patterns": read_yaml(PATTERNS),
    }


def _csv_lines(file: Path, comments: bool) -> list[str]:
    return [line for line in file.read_text(encoding="utf-8").split("\n") if line.startswith("#") == comments]


def read_csv(file: Path, text: bool = False) -> pd.DataFrame:
    """A CSV file without its comment lines, with all cells as `text` or not.

    (The `comment` option of pandas would cut links at their #.)
    """
    return pd.read_csv(io.StringIO("\n".join(_csv_lines(file, comments=False))), dtype=str if text else {"table": str})


def source(file: Path = PUBLISHED) -> str:
    """Where the figures come from: the comment lines of the file."""
    return " ".join(line.removeprefix("#").strip() for line in _csv_lines(file, comments=True))


@cache
def published_benchmarks() -> tuple[str, ...]:
    """The benchmarks of the published tables, in their column order."""
    return tuple(str(name) for name in read_csv(PUBLISHED).columns if name not in OTHER_COLUMNS)


def in_order(benchmarks: Iterable[str]) -> list[str]:
    """Benchmarks in the column order of the published tables. Others follow by name."""
    order = {name: position for position, name in enumerate(published_benchmarks())}
    return sorted(benchmarks, key=lambda name: (order.get(name, len(order)), name))
