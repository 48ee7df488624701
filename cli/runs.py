"""`crosszero runs`: the runs that there are, and what each needs."""

from __future__ import annotations

import click

from cli import graph
from contracts.run_file import SCALES, Run
from recipes.runs import load_run, run_names
from system.errors import ROOT
from system.unknown_names import unknown
from system.yaml_files import read_yaml

COLUMNS = ("run", "framework", "base model", "GPUs", "hours")


def chosen_names(runs: tuple[str, ...], scale: str) -> list[str]:
    """All runs with values for a scale, or those named: runs, or recipes."""
    known = {word for name in run_names() for word in (name, name.partition("/")[0])}
    if missing := [name for name in runs if name not in known]:
        raise unknown("recipe or run", missing[0], sorted(known))
    chosen = [name for name in run_names() if not runs or {name, name.partition("/")[0]} & set(runs)]
    with_values = set(run_names(scale))
    return [name for name in chosen if name in with_values] or chosen


def run_row(run: Run) -> tuple[str, ...]:
    """The cells of a run; hours are those of its whole training, where they were published or follow from what was."""
    needs = run.hardware
    nodes = f" on {needs['nodes']} nodes" if needs.get("nodes", 1) > 1 else ""
    gpus = f"{needs['gpus']} × {needs['gpu_memory_gb']:g} GB{nodes}" if needs["gpus"] else "–"
    hours = f"{needs['expected_hours']:g}" if "expected_hours" in needs else "–"
    return run.name, f"{run.framework}, {run.algorithm}", run.model, gpus, hours


@click.command()
@graph.runs_argument
@click.option("--scale", type=click.Choice(SCALES), help="By default the configuration's.")
def command(runs: tuple[str, ...], scale: str | None) -> None:
    """List runs, or those of recipes: framework, base model, GPUs and hours of training, where known."""
    scale = scale or str(read_yaml(ROOT / "config" / "config.yaml")["scale"])
    rows = [COLUMNS, *(run_row(load_run(name, scale)) for name in chosen_names(runs, scale))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    if scale != "full":
        click.echo(f"\nscale {scale}; the published values: crosszero runs --scale full", err=True)
