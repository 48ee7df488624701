"""`crosszero reproduce RUN…`: train, evaluate and report runs or whole recipes."""

from __future__ import annotations

import sys

import click

from cli import graph


@click.command(cls=graph.WorkflowCommand)
@graph.runs_argument
@click.option(
    "--set", "values", multiple=True, callback=graph.key_values, metavar="KEY=VALUE",
    help="Another value for a key of the run, such as objective.kl_coefficient=0.01.",
)  # fmt: skip
@graph.workflow_options
def command(runs: tuple[str, ...], values: dict[str, str], settings: dict[str, str], options: list[str]) -> None:
    """Train, evaluate and report runs (openr1/qwen2.5-math-7b) or recipes (openr1); without any, the configured ones.

    Needs no GPU at the demo scale. What is there already is not made again.
    """
    chosen = graph.configuration({"reproduce": runs or None, "set": values or None})
    sys.exit(graph.run_target("reproduce_all", settings | chosen, options))
