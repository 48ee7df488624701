"""Translate a training command of one framework into the settings of another, or into those of a run file.

    crosszero translate --from verl train.sh --to trl
    crosszero translate --from openrlhf "python3 -m openrlhf.cli.train_ppo_ray --actor.adam.lr 1e-6" --to verl
    crosszero translate --from trl grpo.yaml --gpus 8 --to run-file
    crosszero translate --from run-file tinyzero/ppo-3b --to openrlhf

Nothing is run. Every setting of the text appears in what is printed: translated, with its meaning; the same by default;
of the machine alone; or as one that cannot be expressed, with the reason. Where the defaults differ, the source's is
stated. With --check the target release's own parser reads the result, in its environment.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from pathlib import Path

from contracts.run_file import SCALES, framework_names
from frameworks import command_parser
from recipes.runs import load_run
from system.command_line import argument_parser
from system.errors import UserError, run_command
from translate.page import as_text
from translate.parser_check import check_accepted
from translate.run_file_text import as_run_file
from translate.settings_of_text import settings_of_text
from translate.translation import read_settings, translate_settings

RUN_FILE = "run-file"


def command_of_run(name: str, scale: str, stage: int) -> tuple[str, list[str]]:
    """A run's framework, and its own command as words.

    Args:
        name: of the run, or the path of a run file.
        scale: of the run file's.
        stage: from 1.

    Raises:
        UserError: there is no such run or stage.
    """
    run = load_run(name, scale)
    if not 1 <= stage <= len(run.stages):
        count = len(run.stages)
        raise UserError(f"--stage should be from 1 to {count}, not {stage}", code="no-such-stage", stages=count)
    parser, chosen = command_parser.load(run.framework), run.stages[stage - 1]
    settings = parser.as_arguments(parser.stated_settings(run, chosen))
    return run.framework, [*parser.launcher(run, chosen), *settings]


def text_of_argument(argument: str) -> tuple[str, Path]:
    """The text that is translated, and the folder of its file; raises UserError if it seems to be a file and is not."""
    if argument == "-":
        return sys.stdin.read(), Path()
    file, one_line = Path(argument), "\n" not in argument
    with contextlib.suppress(OSError):  # a name that is too long is a command
        if one_line and file.is_file():
            return file.read_text(encoding="utf-8"), file.parent
    if one_line and " " not in argument.strip():
        raise UserError(
            f"there is no file {argument}; name a script, or quote a whole command", code="missing-file", path=argument
        )
    return argument, Path()


def translated_page(arguments: argparse.Namespace) -> str:
    """What the command prints."""
    if arguments.source == RUN_FILE:
        framework, command = command_of_run(arguments.text, arguments.scale, arguments.stage)
        text, folder = shlex.join(command), Path()
    else:
        framework, (text, folder) = arguments.source, text_of_argument(arguments.text)
    source, variables = command_parser.load(framework), dict(_assignment(word) for word in arguments.variables)
    settings = settings_of_text(source, text, folder, variables, arguments.number)
    if arguments.gpus:
        if source.gpus is None:
            raise UserError(
                f"a command of {framework} says how many GPUs it takes; leave --gpus out", code="needless-option"
            )
        settings[source.gpus] = arguments.gpus
    reading, labels = read_settings(source, settings)
    if arguments.target == RUN_FILE:
        return as_run_file(source, reading, labels)
    target = command_parser.load(arguments.target)
    translation, rendering = translate_settings(source, target, reading, labels)
    if arguments.check:
        check_accepted(arguments.target, rendering.common, rendering.flags)
    release = target.tables["release"]
    accepted = (
        f"# Accepted by the parser of {release}."
        if arguments.check
        else (f"# Not yet read by the parser of {release}; --check has it read.")
    )
    return f"{as_text(translation, target)}\n\n{accepted}"


def _assignment(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not (name.isidentifier() or name.isdigit()):
        raise UserError(f"--set takes NAME=VALUE, not '{word}'", code="no-assignment")
    return name, value


def main() -> None:
    """Command line."""
    parser = argument_parser(__doc__)
    names = [*framework_names(), RUN_FILE]
    parser.add_argument(
        "text",
        metavar="COMMAND_OR_FILE",
        help="a command, a script or - for standard input, a YAML configuration, or the name of a run",
    )
    parser.add_argument("--from", dest="source", required=True, choices=names)
    parser.add_argument("--to", dest="target", required=True, choices=names)
    parser.add_argument("--gpus", type=int, help="that train, where the text does not say it")
    parser.add_argument(
        "--set", dest="variables", action="append", default=[], metavar="NAME=VALUE", help="a variable of the script"
    )
    parser.add_argument("--number", type=int, help="which command of the text, if it holds several")
    parser.add_argument("--scale", choices=SCALES, default="full", help="of a run file; default: full")
    parser.add_argument("--stage", type=int, default=1, help="of a run file; default: 1")
    parser.add_argument("--check", action="store_true", help="have the target's own parser read the result")
    print(translated_page(parser.parse_args()))


if __name__ == "__main__":
    run_command(main)
