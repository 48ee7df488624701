"""`crosszero compare A B`: is B better than A? Whatever the two are."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from analysis.compare_checkpoints import exit_status
from cli import grade as grade_command
from cli import graph, model_options
from contracts.paths import ResultsFolder
from eval import subset as subsets
from eval.statistics import TIES
from grading.extraction import RULES
from recipes.run_sets import run_set_name
from system.errors import UserError
from system.text_safety import protect_output

if TYPE_CHECKING:
    from analysis.compare_checkpoints.recognise_side import RecognisedSide
    from eval.grade_generations import GradedGenerations, Request

AGAINST = "against"
RECIPE_OPTIONS = ("rule", "paired_seeds")
PAIR_OPTIONS = ("candidates", "choose_on_half", "looks", "problems", "posterior")


class Comparing(model_options.BenchmarksCommand):
    """A command whose mistakes exit with 3, as 1 and 2 are verdicts."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.show()
            ctx.exit(exit_status.ERROR)
        except UserError as error:
            ctx.exit(exit_status.of_error(error))

    def invoke(self, ctx: click.Context) -> Any:
        """As click does; prints the sentence of a mistake."""
        protect_output()
        try:
            return super().invoke(ctx)
        except Exception as error:
            sys.exit(exit_status.of_error(error))


@click.command(cls=Comparing)
@click.argument("names", nargs=-1, required=True, metavar="A… [against] B…", shell_complete=graph.complete_results)
@click.option(
    "--accept", multiple=True, type=click.Choice(("prompt", "protocol", "grader", "subset", "steps")),
    help="What may differ between the sides, or be missing.",
)  # fmt: skip
@click.option(
    "--candidates", type=click.IntRange(1), metavar="N",
    help="Checkpoints of which B was chosen by these scores (default: 1).",
)  # fmt: skip
@click.option(
    "--choose-on-half", is_flag=True, default=None,
    help="The checkpoint of B's run that is best on half of the problems, compared on the other half.",
)  # fmt: skip
@click.option("--looks", type=click.IntRange(2), metavar="N", help="Verdicts that hold however often one looks.")
@click.option("--problems", type=click.Choice(("same", "like")), help="On these same problems, or on such (default).")
@click.option("--posterior", is_flag=True, default=None, help="Note the posterior with a uniform prior, too.")
@click.option("--margin", type=float, metavar="POINTS", help="A loss up to this is not called worse (default: 0).")
@click.option("--ties", type=click.Choice(TIES), help="Of maj@k (default: as the samples' source has them).")
@click.option("--rule", type=click.Choice(("last", "chosen")), help="Of recipes: which checkpoint of each run counts.")
@click.option(
    "--paired-seeds", is_flag=True, default=None, help="Of recipes: runs of one seed are compared with each other."
)
@click.option("--extraction", type=click.Choice([*RULES]), help="Of generations: as in crosszero grade.")
@grade_command.map_option
@graph.workflow_options
@model_options.model_options
def command(
    names: tuple[str, ...], settings: dict[str, str], options: list[str],
    extraction: str | None, fields: dict[str, str], **wanted: Any,
) -> None:  # fmt: skip
    """Is B better than A, worse, or can it not be told?

    \b
    question                                 command
    is my model better than the last one?    crosszero compare OLD_FOLDER NEW_FOLDER
    did training help?                       crosszero compare RUN/seed-0/step-0 RUN/seed-0/step-24
    which file of completions is better?     crosszero compare old.jsonl new.jsonl
    am I above the published figure?         crosszero compare sober/Qwen2.5-Math-7B new.jsonl
    is one recipe better than another?       crosszero compare RUN OTHER_RUN --seeds 0,1,2
    the same of trainings made elsewhere     crosszero compare A0 A1 A2 against B0 B1 B2
    is the best of 20 checkpoints better?    crosszero compare OLD NEW --candidates 20
    is it at most one point worse?           crosszero compare OLD NEW --margin 1
    is it better on these very problems?     crosszero compare OLD NEW --problems same
    is the run's best checkpoint better?     crosszero compare OLD RUN/seed-0/step-24 --choose-on-half
    I look as samples come in: is it?        crosszero compare OLD NEW --looks 64
    same, with seeds that go together        crosszero compare RUN OTHER_RUN --seeds 0,1,2 --paired-seeds

    RUN is such as openr1/qwen2.5-math-7b. Exit status: 0 not worse, 1 worse, 2 not comparable, 3 an
    error.
    """
    from analysis.compare_checkpoints.recognise_side import TRAININGS, check_sides, recognise_side
    from eval import benchmark

    configuration = graph.configured(**{key: yaml.safe_load(text) for key, text in settings.items()})
    benchmarks = configuration.get("benchmarks") or ()
    benchmark.check_names(benchmarks)
    grading = grade_command.request((), configuration, extraction=extraction, mapping=fields)
    sides = [[recognise_side(name, grading.results) for name in part] for part in two_sides(names)]
    for title, part in zip("AB", sides, strict=True):
        click.echo(f"{title}: {', '.join(f'{side.typed} ({side.kind})' for side in part)}")
    click.echo()
    check_sides(sides)
    kinds = {side.kind for part in sides for side in part}
    check_limit(configuration, kinds)
    recipes = sides[0][0].kind == TRAININGS or max(map(len, sides)) > 1
    check_options(wanted, recipes, "sequential" in settings)
    sides = graded_sides(sides, grading, benchmarks)
    wanted |= {"benchmarks": tuple(benchmarks)}
    if sides[0][0].kind == TRAININGS:
        sys.exit(compare_runs(sides, grading.results, settings, options, wanted))
    if max(map(len, sides)) > 1:
        sys.exit(compare_trainings(sides, grading.results, wanted))
    (baseline,), (new,) = sides
    sys.exit(compare_pair(baseline, new, grading.results, settings, options, wanted))


def two_sides(names: Sequence[str]) -> list[list[str]]:
    """The names of each side: two names, or several with `against` between the sides."""
    if AGAINST in names:
        middle = names.index(AGAINST)
        sides = [list(names[:middle]), list(names[middle + 1 :])]
    else:
        sides = [[name] for name in names]
    if len(sides) != 2 or not all(sides) or AGAINST in sides[1]:
        raise UserError(
            f"two sides are compared, A and B, each one name, or several with the word {AGAINST} between them",
            code="not-two-sides", names=list(names),
        )  # fmt: skip
    return sides


def check_options(wanted: Mapping[str, Any], recipes: bool, rounds: bool) -> None:
    """Refuse options of another kind of comparison; raises UserError.

    Args:
        wanted: the options that the user chose.
        recipes: whether recipes are compared, over their seeds.
        rounds: whether both models are sampled in rounds.
    """
    needless = ("margin", *PAIR_OPTIONS) if recipes else (*RECIPE_OPTIONS, *(PAIR_OPTIONS if rounds else ()))
    kind = "recipes" if recipes else "samples in rounds" if rounds else "two checkpoints"
    if chosen := [name for name in needless if wanted.get(name)]:
        raise UserError(
            f"--{chosen[0].replace('_', '-')} is of no use for a comparison of {kind}: leave it out",
            code="needless-option", option=chosen[0],
        )  # fmt: skip


def check_limit(configuration: Mapping[str, Any], kinds: Collection[str]) -> None:
    """Refuse to ask models a part of the benchmarks where no model is asked."""
    from analysis.compare_checkpoints.recognise_side import TO_EVALUATE

    wishes = [key for key in ("limit", "sample", "protocol", "prompt") if configuration.get(key)]
    if wishes and not set(kinds) & set(TO_EVALUATE):
        raise UserError(
            f"--{wishes[0]} says how models are sampled, but the sides are {', '.join(sorted(kinds))}: leave it out",
            code="needless-option", option=wishes[0],
        )  # fmt: skip


def graded_sides(
    sides: list[list[RecognisedSide]], grading: Request, benchmarks: Sequence[str]
) -> list[list[RecognisedSide]]:
    """The sides with generations graded, all by the same extraction rule where the user names none.

    Args:
        sides: as they were recognised.
        grading: how to grade.
        benchmarks: those that are compared; one decides where the questions do not.
    """
    from analysis.compare_checkpoints.recognise_side import GENERATIONS, GRADED
    from eval.importers.recognise_file import read_all

    requests = {
        side: replace(grading, files=(side.name,)) for part in sides for side in part if side.kind == GENERATIONS
    }
    for request in list(requests.values())[1:]:  # what the last file lacks is said before the first one is graded
        read_all(request.files, request.mapping)
    graded = {side: graded_request(request, benchmarks) for side, request in requests.items()}
    rules = {result.extraction for result in graded.values()} - {"none"}
    if len(rules) == 1 and grading.extraction is None:
        rule = next(iter(rules))
        for side, result in graded.items():
            if result.extraction != rule:
                graded[side] = graded_request(replace(requests[side], extraction=rule), benchmarks)
    for result in graded.values():
        click.echo(f"{grade_command.summary(result)}\n")
    return [
        [
            replace(side, kind=GRADED, name=str(grading.results.run(graded[side].run).graded))
            if side in graded
            else side
            for side in part
        ]
        for part in sides
    ]


def graded_request(request: Request, benchmarks: Sequence[str]) -> GradedGenerations:
    """The generations, graded; as of the one benchmark that is named, unless some of them are of others."""
    from eval.grade_generations import grade_generations

    if len(benchmarks) != 1:
        return grade_generations(request)
    try:
        return grade_generations(replace(request, benchmark=benchmarks[0]))
    except UserError as error:
        if not error.facts.get("matched"):
            raise
        try:
            return grade_generations(request)
        except UserError:
            raise error from None


def compare_pair(
    baseline: RecognisedSide, new: RecognisedSide, results: ResultsFolder, settings: dict[str, str],
    options: list[str], wanted: Mapping[str, Any],
) -> int:  # fmt: skip
    """Compare two checkpoints, models, or sets of samples; returns the exit status of the verdict."""
    from analysis.compare_checkpoints import __main__ as program
    from analysis.compare_checkpoints.comparison_request import ComparisonRequest, Side, command_options
    from analysis.compare_checkpoints.recognise_side import MODEL, TO_EVALUATE

    runs = results.path.resolve() / "runs"
    names = [side.name.removeprefix(f"{runs}/").removesuffix("/graded") for side in (new, baseline)]
    slugs = [Side(side.kind, name).slug for side, name in zip((new, baseline), names, strict=True)]
    kind = "in_rounds" if "sequential" in settings else "checkpoints"
    part = subsets.choose(*(yaml.safe_load(settings.get(key, "null")) for key in ("limit", "sample", "sample_seed")))
    folder = results.path / "compare" / kind / ("-against-".join(slugs) + (f"-{part.folder}" if part else ""))
    if not {baseline.kind, new.kind} & set(TO_EVALUATE):
        sides = ["--checkpoint", new.name, "--baseline", baseline.name]
        names = ["--checkpoint-name", new.typed, "--baseline-name", baseline.typed]
        arguments = command_options(wanted, "benchmarks", "accept", "margin", *PAIR_OPTIONS, "ties")
        status = program.main(["compare", *sides, *names, *arguments, "--output", str(folder)])
    else:
        chosen = {key: list(value) if isinstance(value, tuple) else value for key, value in wanted.items() if value}
        chosen |= {"checkpoint": new.name, "baseline": baseline.name}
        if {baseline.kind, new.kind} == {MODEL}:  # what the workflow would refuse, with the exit status of comparisons
            configuration = {key: yaml.safe_load(text) for key, text in settings.items()} | chosen
            ComparisonRequest(graph.configured(**configuration), {}, results)
        target = graph.target_of(folder)
        if failed := graph.run_target(target, settings | graph.configuration(chosen), options):
            click.echo(f"Error: the samples or the comparison could not be made (status {failed})", err=True)
            return exit_status.ERROR
        if not (folder / "comparison.json").is_file():  # a dry run
            return 0
        status = program.main(["show", str(folder / "comparison.json")])
    if status == exit_status.NOT_COMPARABLE and _is_acceptable(folder / "comparison.json"):
        click.echo("\nWhat may differ all the same is named with --accept: prompt, protocol, grader, subset.")
    if status != exit_status.ERROR:
        click.echo(f"\npage:   {folder / 'index.html'}")
    return status


def _is_acceptable(comparison: Path) -> bool:
    """Whether the sides differ in how they were made, and not in that one has no samples."""
    lines = json.loads(comparison.read_text(encoding="utf-8"))["lines"]
    return any(reason.startswith("different ") for line in lines for reason in line["reasons"])


def compare_trainings(sides: list[list[RecognisedSide]], results: ResultsFolder, wanted: Mapping[str, Any]) -> int:
    """Compare two recipes by graded samples of their training runs; returns the exit status of the verdict."""
    from analysis import hash_order
    from analysis.compare_checkpoints.comparison_request import command_options
    from analysis.compare_recipes import __main__ as program

    typed = ["-".join(Path(side.typed).name for side in part)[:60] for part in sides]
    keys = [hash_order.key(*(Path(side.name).resolve() for side in part))[:8] for part in sides]
    names = [f"{name}-{key}" for name, key in zip(typed, keys, strict=True)]  # folders are often called graded
    folder = results.path / "compare" / "recipes" / "-against-".join(reversed(names))
    arguments = command_options(wanted, "benchmarks", "accept", "ties", "rule", "paired_seeds")
    a, b = ([side.name for side in part] for part in sides)
    return program.main(["--a", *a, "--b", *b, *arguments, "--output", str(folder)])


def compare_runs(
    sides: list[list[RecognisedSide]], results: ResultsFolder, settings: dict[str, str], options: list[str],
    wanted: Mapping[str, Any],
) -> int:  # fmt: skip
    """Compare two recipes, of whose runs the workflow makes what is missing; returns the exit status of the verdict."""
    chosen = {key: list(value) if isinstance(value, tuple) else value for key, value in wanted.items() if value}
    a, b = ([side.name for side in part] for part in sides)
    for names in (a, b):
        check_seeds(names, settings)
    chosen |= {"recipe_a": a, "recipe_b": b}
    name = "-against-".join(run_set_name(names, {}, ()) for names in (a, b))
    file = results.path / "compare" / "recipes" / name / "recipes.json"
    before = file.stat().st_mtime_ns if file.is_file() else None
    failed = graph.run_target("compare_recipes", settings | graph.configuration(chosen), options)
    if not file.is_file() or file.stat().st_mtime_ns == before:  # a dry run, or a training that failed
        return exit_status.ERROR if failed else exit_status.NOT_WORSE
    return int(json.loads(file.read_text(encoding="utf-8"))["exit_status"])


def check_seeds(names: Sequence[str], settings: Mapping[str, str]) -> None:
    """Refuse a side with one training, before anything is trained; raises UserError."""
    configured = graph.configured()["seeds"]
    seeds = yaml.safe_load(settings["seeds"]) if "seeds" in settings else configured
    if (trainings := sum(1 if name.count("/") == 2 else len(seeds) for name in names)) < 2:
        raise UserError(
            f"a comparison of recipes needs two training seeds a side or more, but {', '.join(names)} has {trainings}: "
            "add --seeds 0,1,2, or compare two checkpoints, such as "
            f"{names[0]}{'' if names[0].count('/') == 2 else '/seed-0'}/step-N",
            code="too-few-seeds", seeds=trainings,
        )  # fmt: skip
