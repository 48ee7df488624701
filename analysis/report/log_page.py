"""A page of training logs alone: the newest step of each, signs of collapse, curves, newest completions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from analysis.live_log import LiveRun, of_log
from analysis.report import figure_style, figures_training, page
from analysis.results import RunResults
from contracts import durable, provenance

FIGURES = {
    "reward": figures_training.reward, "response_length": figures_training.response_length,
    "rates": figures_training.rates, "divergence": figures_training.divergence,
}  # fmt: skip


def render(runs: Sequence[LiveRun], scale: str, *, reports: Sequence[str] = (), seconds: int | None = None) -> str:
    """The page.

    Args:
        runs: those to show.
        scale: its name.
        reports: names of stored reports, which are linked.
        seconds: after which a browser asks for the page again, if it is served.
    """
    figures: dict[str, Any] = {}
    if runs:
        figure_style.set_style()
        with TemporaryDirectory() as folder:
            for name, draw in FIGURES.items():
                svg = figure_style.save(draw([run.results for run in runs]), Path(folder), name)
                figures[name] = page.inline_svg(svg, name, page.caption(name))
    return page.environment().get_template("watch.html.j2").render(
        css=page.css(), script=page.script("tables.js"), runs=runs, figures=figures, reports=reports, seconds=seconds,
        scale=scale, captions={name: page.caption(name) for name in figures}, number=itertools.count(1).__next__,
    )  # fmt: skip


def write(runs: Sequence[RunResults], output: Path, scale: str) -> Path:
    """Write index.html for imported logs that are reported without any run.

    Args:
        runs: what load_results read.
        output: folder to write to.
        scale: its name.
    """
    index = output / "index.html"
    durable.write_text(index, render([of_log(run) for run in runs], scale))
    provenance.write(output, runs=[run.name for run in runs], scale=scale)
    return index
