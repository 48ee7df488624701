"""`crosszero show RESULT`: what is this file or folder?"""

from __future__ import annotations

import click

from cli import grade, graph


@click.command()
@click.argument("results", nargs=-1, required=True, metavar="RESULT…", shell_complete=graph.complete_results)
def command(results: tuple[str, ...]) -> None:
    """Say what a file or folder is, in ten lines: run, step, protocol, numbers, and how it was made.

    RESULT is anything under results/, a model's folder, a file of generations made elsewhere, a run file, or the name
    of a run (openr1/qwen2.5-math-7b/seed-0) or checkpoint (…/step-24) here.
    """
    from analysis.artefacts.describe import describe, find_result

    folder = grade.request((), graph.configured()).results
    for number, name in enumerate(results):
        click.echo(("\n" if number else "") + describe(find_result(name, folder)))
