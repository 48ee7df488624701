"""`crosszero evaluate MODEL`: score a model of one's own."""

from __future__ import annotations

import sys

import click

from cli import graph, model_options


@click.command(cls=model_options.BenchmarksCommand)
@click.argument("model", shell_complete=graph.complete_results)
@graph.workflow_options
@model_options.model_options
def command(model: str, settings: dict[str, str], options: list[str]) -> None:
    """Sample a model on benchmarks, grade and score what it writes, and make a page of it.

    MODEL is a folder in Hugging Face format, a hub id, or a stored checkpoint such as
    openr1/qwen2.5-math-7b/seed-0/step-24. It is asked as --protocol and --prompt say; else, if it is a checkpoint of a
    run, as that run was; else as the benchmark's task has it. Where that leaves a choice, the command asks. Scores of
    --limit and --sample say that they are of a part of the benchmark.
    """
    chosen = graph.configuration({"checkpoint": model_options.model_path(model)})
    sys.exit(graph.run_target("evaluate", settings | chosen, options))
