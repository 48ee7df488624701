"""A page of training logs alone: the newest step of each, signs of collapse, curves, newest completions."""

from __future__ import annotations

import itertools
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from analysis.live_log import LiveRun, from_log
from analysis.measures.diagnostics import diagnose
from analysis.pages import figure_style, page
from analysis.report import training_curves
from analysis.results import RunResults
from analysis.statistics.training_seeds import by_recipe
from contracts import provenance
from system import durable

FIGURES = {
    "reward": training_curves.plot_reward, "response_length": training_curves.plot_response_length,
    "rates": training_curves.plot_rates, "divergence": training_curves.plot_divergence,
}  # fmt: skip


class Live(NamedTuple):
    """Of a page that is served while runs go on: seconds between two looks for changes, and the state that it shows."""

    seconds: int
    state: str


def render(
    runs: Sequence[LiveRun],
    scale: str,
    *,
    unreadable: Mapping[str, str] = types.MappingProxyType({}),
    reports: Sequence[str] = (),
    live: Live | None = None,
) -> str:
    """The page.

    Args:
        runs: those to show.
        scale: its name.
        unreadable: why other runs are not shown, by their names.
        reports: names of stored reports, which are linked.
        live: of a page that is served; None for one that stays as it is, which has sources and warnings, too.
    """
    figures: dict[str, Any] = {}
    if runs:
        figure_style.set_style()
        with TemporaryDirectory() as folder:
            for name, plot in FIGURES.items():
                svg = figure_style.save(plot(by_recipe(run.results for run in runs)), Path(folder), name)
                figures[name] = page.inline_svg(svg, name, training_curves.CAPTIONS[name])
    return page.environment().get_template("watch.html.j2").render(
        css=page.css(), script=page.script("tables.js", *(["watch.js"] if live else [])), runs=runs, figures=figures,
        reports=reports, live=live, scale=scale, captions=training_curves.CAPTIONS,
        number=itertools.count(1).__next__, unreadable=unreadable,
        warnings=[] if live else [one for run in runs for one in diagnose(run.results)],
        titles={run.results.name: run.results.display_name for run in runs},
        imported=[run.results for run in runs if "imported" in run.results.log_record],
    )  # fmt: skip


def write(runs: Sequence[RunResults], output: Path, scale: str) -> Path:
    """Write index.html for imported logs that are reported without any run.

    Args:
        runs: what load_results read.
        output: folder to write to.
        scale: its name.
    """
    index = output / "index.html"
    durable.write_text(index, render([from_log(run) for run in runs], scale))
    provenance.write(output, runs=[run.name for run in runs], scale=scale)
    return index
