"""Ask the workflow for a target, in the folder of the project: `snakemake TARGET --config …`."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from contracts.run_file import SCALES, validate
from system.errors import ROOT
from system.interruptible import run_interruptible
from system.yaml_files import read_yaml, read_yaml_text

COMMAND = "CROSSZERO_COMMAND"  # environment variable: what the user typed, for the line that says how to resume
FOLDER = click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path)
REST = "snakemake options"  # key of the context: what comes after `--`


class WorkflowCommand(click.Command):
    """A command that hands what comes after `--` on to Snakemake."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, with what comes before `--`."""
        end = args.index("--") if "--" in args else len(args)
        ctx.meta[REST] = args[end + 1 :]
        return super().parse_args(ctx, args[:end])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The parts of the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- SNAKEMAKE_OPTIONS]"]


def whole_numbers(context: click.Context, option: click.Parameter, text: str | None) -> list[int] | None:
    """The numbers of `0,1,2`."""
    if text is None:
        return None
    if not all(part.strip().isdecimal() for part in text.split(",")):
        raise click.BadParameter(f"should be whole numbers such as 0,1,2, not {text}", context, option)
    return [int(part) for part in text.split(",")]


def key_values(context: click.Context, option: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    """The pairs of `key=value`."""
    for pair in pairs:
        if not pair.partition("=")[1]:
            raise click.BadParameter(f"should be KEY=VALUE, not {pair}", context, option)
    return dict(pair.split("=", 1) for pair in pairs)


def workflow_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every command that asks the workflow.

    The function gets them as `settings`, options `--config` of Snakemake, and `options`, Snakemake's others.
    """

    @click.option(
        "--scale",
        type=click.Choice(SCALES),
        help="demo: tiny models on this CPU; small: pretrained ones; full: as published, on GPUs.",
    )
    @click.option("--seeds", callback=whole_numbers, metavar="N,N,…", help="Training seeds, such as 0,1,2.")
    @click.option("--data-mirror", type=FOLDER, metavar="FOLDER", help="Read data sets from here instead of the hub.")
    @click.option("--profile", metavar="NAME", help="Snakemake's profile, such as slurm.")
    @click.option(
        "--config", "configured", multiple=True, callback=key_values, metavar="KEY=VALUE",
        help="Another key of config/config.yaml; the value is YAML.",
    )  # fmt: skip
    @click.option("--dry-run", "-n", is_flag=True, help="Only say what would be done.")
    @click.pass_context
    @wraps(function)
    def command(
        context: click.Context, /, *, scale: str | None, seeds: list[int] | None, profile: str | None,
        data_mirror: Path | None, configured: dict[str, str], dry_run: bool, **values: Any,
    ) -> None:  # fmt: skip
        for key, text in configured.items():
            read_yaml_text(text, f"--config {key}")
        mirror = str(data_mirror) if data_mirror else None
        settings = configuration({"scale": scale, "seeds": seeds, "data_mirror": mirror}) | configured
        options = [*(["--profile", profile] if profile else []), *(["--dry-run"] if dry_run else [])]
        function(settings=settings, options=options + context.meta[REST], **values)

    return command


def complete_runs(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """The recipes and runs that begin with what was typed, for the shell's completion."""
    from recipes.runs import run_names  # only here: the list of commands should come at once

    names = run_names()
    return [name for name in [*sorted({name.split("/")[0] for name in names}), *names] if name.startswith(typed)]


def complete_sweeps(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """The sweeps that begin with what was typed."""
    from recipes import sweeps

    return [name for name in sweeps.names() if name.startswith(typed)]


def complete_files(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Files and folders, as the shell completes them."""
    return [CompletionItem(typed, type="file")]


def complete_results(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Runs, and those trained here with their checkpoints; files where no name begins so."""
    configured = read_yaml(ROOT / "config" / "config.yaml")
    folder = ROOT / configured["results"] / configured["scale"] / "runs"
    trained = [str(path.relative_to(folder)) for path in sorted(folder.glob("*/*/seed-*"))]
    steps = [str(path.relative_to(folder)) for path in sorted(folder.glob("*/*/seed-*/checkpoints/step-*"))]
    names = [
        *complete_runs(context, parameter, typed),
        *trained,
        *(name.replace("/checkpoints/", "/") for name in steps),
    ]
    return [*complete_files(context, parameter, typed), *map(CompletionItem, (n for n in names if n.startswith(typed)))]


def runs_argument(function: Callable[..., None]) -> Callable[..., None]:
    """Add the argument `runs`: runs and recipes, none for those of the configuration."""
    return click.argument("runs", nargs=-1, metavar="[RUN]…", shell_complete=complete_runs)(function)


def configuration(settings: Mapping[str, Any]) -> dict[str, str]:
    """Keys of the configuration as Snakemake reads them, YAML; those that are None keep the configuration's value."""
    texts = {key: json.dumps(value, ensure_ascii=False) for key, value in settings.items() if value is not None}
    # Snakemake strips quotes from both ends, of the name itself if that ends with one; it leaves spaces.
    return {key: f" {text} " if text.startswith('"') else text for key, text in texts.items()}


def configured(**chosen: object) -> dict[str, Any]:
    """The configuration, with the values that a command names."""
    values = {key: value for key, value in chosen.items() if value is not None}
    return read_yaml(ROOT / "config" / "config.yaml") | values


def read_configuration(settings: Mapping[str, str]) -> dict[str, Any]:
    """The configuration with these keys in place of its own; raises UserError where it would be none.

    Args:
        settings: YAML by key, see `configuration`.
    """
    whole = configured() | {key: read_yaml_text(text, f"--config {key}") for key, text in settings.items()}
    validate(whole, "config", "the configuration")
    return whole


def target_of(path: Path) -> str:
    """A path as the workflow names it: below the project's folder, if it is there."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def run_target(target: str, settings: Mapping[str, str], options: Sequence[str] = ()) -> int:
    """Run a target of the workflow; returns Snakemake's exit status.

    Args:
        target: a rule or a file.
        settings: keys of the configuration, see `configuration`.
        options: of Snakemake.
    """
    pairs = [f"{key}={value}" for key, value in settings.items()]
    chatty = any(option.startswith(("--quiet", "-q", "--verbose")) for option in options)
    quiet = [] if chatty else ["--quiet", "rules", "host"]  # one line for each job that starts or ends
    command = [
        sys.executable,
        "-m",
        "cluster.start_snakemake",
        target,
        *options,  # more targets may be the first of them
        *quiet,
        *(["--config", *pairs] if pairs else []),
    ]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    typed = shlex.join(["crosszero", *sys.argv[1:]])
    return run_interruptible(
        command, cwd=ROOT, environment={**os.environ, "PATH": path, COMMAND: typed}, answered_later=True
    )
