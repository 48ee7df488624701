"""`crosszero grade FILE…`: judge generations made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli import graph
from contracts.paths import ResultsFolder
from contracts.run_file import SCALES
from grading.extraction import RULES
from system.errors import ROOT
from system.text_table import aligned

if TYPE_CHECKING:
    from eval.grade_generations import GradedGenerations, Request


def checked_fields(context: click.Context, option: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    """The pairs of `column=field`; raises UserError for a column that there is not."""
    from eval.importers.import_samples import parse_mapping

    graph.key_values(context, option, pairs)
    return parse_mapping(",".join(pairs), needed=())


map_option = click.option(
    "--map", "fields", multiple=True, callback=checked_fields, metavar="COLUMN=FIELD",
    help="Of a plain table: which field holds completion, question, gold, right, …; a.b is field b of a.",
)  # fmt: skip


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", shell_complete=graph.complete_files)
@click.option("--benchmark", metavar="NAME", help="The benchmark; without it, it is recognised by the questions.")
@click.option(
    "--extraction", type=click.Choice([*RULES]),
    help="Where to look for an answer without a box; without it, chosen by the completions.",
)  # fmt: skip
@map_option
@click.option("--allow-missing", is_flag=True, help="Leave out generations of questions that are not recognised.")
@click.option("--run", "name", metavar="NAME", help="Name of the results, imported/NAME (default: by the files).")
@click.option("--data-mirror", type=graph.FOLDER, metavar="FOLDER", help="Read data sets from here instead of the hub.")
@click.option("--scale", type=click.Choice(SCALES), help="Of the results folder (default: as configured).")
def command(
    files: tuple[str, ...],
    fields: dict[str, str],
    scale: str | None,
    data_mirror: Path | None,
    **options: str | bool | None,
) -> None:
    """Judge generations made elsewhere: scores by each grader, and a page.

    Reads files of Qwen2.5-Math's harness, lm-eval (--log_samples), lighteval (details) and inspect_ai, and plain JSONL,
    JSON, CSV and Parquet, compressed or not; also folders of them. Which it is, and of which benchmark, is read from
    the content. Results go to results/<scale>/runs/imported/; the same files again print the same result.
    """
    from eval.grade_generations import grade_generations

    wanted = request(files, graph.configured(scale=scale, data_mirror=data_mirror), mapping=fields, **options)
    graded = grade_generations(wanted)
    click.echo(summary(graded))
    click.echo(f"scores: {wanted.results.run(graded.run).scores}")
    click.echo(f"page:   {report_page(wanted.results, graded)}")


def request(files: tuple[str, ...], configuration: Mapping[str, Any], **options: Any) -> Request:
    """What to grade, with the results folder and the mirror of the configuration."""
    from eval.grade_generations import Request

    mirror = ROOT / configuration["data_mirror"] if configuration["data_mirror"] else None
    return Request(files, ResultsFolder(ROOT / configuration["results"] / configuration["scale"]), mirror, **options)


def summary(graded: GradedGenerations) -> str:
    """What the files were taken for, the scores by grader, and what a reader has to know."""
    from eval.importers.recognise_file import TITLES

    shares = ("truncated (%)", "no answer (%)")
    head = ("benchmark", "grader", "correct (%)", "95 % interval", "problems × repeats", *shares)
    rows = [
        (
            line.benchmark, line.grader, f"{100 * line.value:.1f}", f"[{100 * line.low:.1f}, {100 * line.high:.1f}]",
            f"{line.problems:,}" + (f" of {line.whole:,}" if line.problems < line.whole else "") + f" × {line.repeats}",
            *("–" if share is None else f"{100 * share:.1f}" for share in (line.truncated, line.silent)),
        )
        for line in graded.lines
    ]  # fmt: skip
    names = ", ".join(dict.fromkeys(line.benchmark for line in graded.lines))
    taken_for = f"{graded.title}: {TITLES[graded.layout]}; {names}"
    return "\n".join([taken_for, "", aligned(head, rows), "", *(f"· {note}" for note in graded.notes)])


def report_page(results: ResultsFolder, graded: GradedGenerations) -> Path:
    """The page of the generations, which is made if it is not there."""
    folder = results.path / "report" / graded.run
    page = folder / "index.html"
    if not page.is_file():
        from analysis.load_results import load_results
        from analysis.report.build import report

        report([load_results(results.path, graded.run)], folder, graded.title, results.path.name)
    return page
