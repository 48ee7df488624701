"""`crosszero study NAME`: answer a question with the product; without a name, the list of questions."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli import environments, graph
from system.errors import ROOT
from system.unknown_names import unknown

STUDIES = ROOT / "studies"
MAIN = '\nif __name__ == "__main__":'


def study_folders() -> dict[str, Path]:
    """The folders of studies by name."""
    return {file.parent.name: file.parent for file in sorted(STUDIES.glob("*/__init__.py"))}


def study_programs(folder: Path) -> list[str]:
    """The modules of a study that are programs."""
    return [file.stem for file in sorted(folder.glob("*.py")) if MAIN in file.read_text(encoding="utf-8")]


def has_target(folder: Path) -> bool:
    """Whether the workflow has a target for a study, which makes what the study reads."""
    rules = folder / "rules.smk"
    return rules.is_file() and f"rule study_{folder.name}:" in rules.read_text(encoding="utf-8")


def question_of(folder: Path) -> str:
    """What a study answers."""
    return (folder / "README.md").read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


class StudyGroup(click.Group):
    """The studies as commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All studies."""
        return list(study_folders())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of a study; its programs are those of its folder."""
        folders = study_folders()
        if cmd_name not in folders:
            raise unknown("study", cmd_name, folders)
        return study_command(folders[cmd_name])


class TargetGroup(graph.WorkflowCommand, click.Group):
    """A study that the workflow makes, and its programs."""


def study_command(folder: Path) -> click.Command:
    """What click runs for a study: its target of the workflow, and its programs."""
    programs = {name: program_command(folder.name, name) for name in study_programs(folder)}
    if has_target(folder):
        study: click.Command = target_group(programs)
    elif len(programs) == 1:
        (study,) = programs.values()
    else:
        study = click.Group(commands=programs)
    study.name, study.short_help = folder.name, question_of(folder)
    study.help = f"{question_of(folder)} See studies/{folder.name}/README.md."
    return study


def program_command(study: str, program: str) -> click.Command:
    """A program of a study, with its own options and `--environment`."""
    command = environments.program_command(environments.BASE, f"studies.{study}.{program}")
    command.short_help = f"See crosszero study {study} {program} --help."
    return command


def target_group(programs: dict[str, click.Command]) -> click.Group:
    """A study that the workflow makes; its programs work on what is there."""

    @click.command(cls=TargetGroup, commands=programs, invoke_without_command=True)
    @graph.workflow_options
    @click.pass_context
    def make_study(context: click.Context, settings: dict[str, str], options: list[str]) -> None:
        if context.invoked_subcommand is None:
            sys.exit(graph.run_target(f"study_{context.info_name}", settings, options))

    return make_study


@click.command(cls=StudyGroup, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Answer a question with the product, by the commands of studies/NAME/README.md. Without NAME: the questions.

    A study that the workflow knows makes all that it reads. Its programs work on what is there.
    """
    if context.invoked_subcommand is None:
        folders = study_folders()
        width = max(map(len, folders))
        for name, folder in folders.items():
            click.echo(f"{name:{width}}  {question_of(folder)}")
