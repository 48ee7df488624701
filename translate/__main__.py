"""Translate a training command of one framework into the settings of another, or into those of a run file.

    crosszero translate train.sh --to trl
    crosszero translate "python3 -m openrlhf.cli.train_ppo_ray --actor.adam.lr 1e-6" --to verl
    crosszero translate --from trl grpo.yaml --gpus 8 --to run-file
    crosszero translate tinyzero/ppo-3b --to openrlhf

The framework is known by the program that the text starts first; a configuration needs --from. No program of the text
is run. Every setting of it appears in what is printed: translated, with its meaning; the same by default; of the
machine alone; or as one that cannot be expressed, with the reason. Where the defaults differ, the source's is stated.
With --check the target release's own parser reads the result, in its environment.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from contracts.run_file import SCALES, framework_names
from frameworks import command_parser
from frameworks.command_parser import CommandParser
from frameworks.command_reading import Reading
from frameworks.command_settings import Flags
from frameworks.earlier_releases import changed_defaults, chosen_release, defaults_then, meanings_then
from recipes.runs import load_run, run_names
from system.command_line import argument_parser
from system.errors import UserError, run_command
from translate.page import as_text
from translate.parser_check import check_accepted
from translate.run_file_text import as_run_file
from translate.script_commands import starts_training
from translate.settings_of_text import no_training, settings_of_text, words_in_pairs
from translate.translation import read_settings, refuse_open, translate_settings
from translate.update import update_settings

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


def framework_of_text(text: str) -> str:
    """The framework whose training a text starts first; raises UserError if it starts none."""
    entries = {name: command_parser.load(name).entry for name in framework_names()}
    for before, word in words_in_pairs(text):
        for name, entry in entries.items():
            is_pattern = not before and "." not in word  # of `case`: no program has a training's bare name
            if not is_pattern and starts_training(entry, before, word):
                return name
    sentence = "the text starts no training of a framework: say with --from whose it is"
    raise no_training(sentence, "framework-not-recognised", text)


def translated_page(arguments: argparse.Namespace) -> str:
    """What the command prints."""
    is_run = arguments.source == RUN_FILE or (not arguments.source and arguments.text.partition("@")[0] in run_names())
    if is_run:
        framework, command = command_of_run(arguments.text, arguments.scale, arguments.stage)
        text, folder = shlex.join(command), Path()
    else:
        text, folder = text_of_argument(arguments.text)
        framework = arguments.source or framework_of_text(text)
    source, variables = command_parser.load(framework), dict(_assignment(word) for word in arguments.variables)
    settings = settings_of_text(source, text, folder, variables, arguments.number)
    if arguments.gpus:
        if source.gpus is None:
            raise UserError(
                f"a command of {framework} says how many GPUs it takes; leave --gpus out", code="needless-option"
            )
        settings[source.gpus] = arguments.gpus
    release = chosen_release(source, arguments.release) if arguments.release else ""
    earlier = source.meant_then(settings, defaults_then(source, release)) if release else {}
    reading, labels = read_settings(source, settings, earlier)
    if arguments.target != framework:  # today's release gets the script's own words
        refuse_open(reading, settings.left_open)
    open_line = _about_left_open(settings.left_open)
    if arguments.target != framework:
        open_line += _about_processes(source, settings)
    if arguments.target == RUN_FILE:
        return "".join(f"# {line}\n" for line in open_line) + as_run_file(source, reading, labels)
    target = command_parser.load(arguments.target)
    flags: Flags
    if target.framework == framework:
        translation, flags = update_settings(source, settings, earlier, f"{framework} {release}")
        common: Mapping[str, Any] = reading.common
    else:
        translation, rendering = translate_settings(source, target, reading, labels)
        common, flags = rendering.common, rendering.flags
    if arguments.check:
        check_accepted(arguments.target, common, flags)
    head = _about_defaults(source, reading, labels, release) if not is_run else []
    head += open_line + _about_inputs(source, labels)
    checked = "accepted by" if arguments.check else "not yet read by"
    hint = "" if arguments.check else "; --check has it read"
    head.append(f"The result is {checked} the parser of {target.tables['release']}{hint}.")
    return as_text(translation, target, head, settings.left_open)


def _about_left_open(left_open: Sequence[str]) -> list[str]:
    """What a script does not decide, and how to say it; nothing if it decides all."""
    if not left_open:
        return []
    takes_arguments = any(part[1:].isdigit() for part in left_open)
    none = ", and --set 1= that the script has no arguments" if takes_arguments else ""
    return [f"Left open by the text: {', '.join(left_open)}. --set NAME=VALUE says one{none}."]


def _about_processes(source: CommandParser, settings: Mapping[str, Any]) -> list[str]:
    """That the text does not say how many processes train, by which batches are counted; nothing if it does."""
    if source.gpus is None or source.gpus in settings:
        return []
    return ["The text does not say how many processes train, so it is read with one; --gpus says how many do."]


def _about_inputs(source: CommandParser, stated: Collection[str]) -> list[str]:
    """That the text names no model or no data set, by today's names; nothing if it names both."""
    names = {key: source.unconverted[key] for key in ("model", "dataset")}
    absent = {key: name for key, name in names.items() if name not in stated}
    if "datasets" in stated:  # several, in a configuration of TRL
        absent.pop("dataset", None)
    what = " and no ".join(absent).replace("dataset", "data set")
    return [f"The text names no {what} ({', '.join(absent.values())}); nor does the result."] if absent else []


def _about_defaults(
    source: CommandParser, reading: Reading, labels: Mapping[str, Sequence[str]], release: str
) -> list[str]:
    """Which release's defaults the text is read with, and which of those that it relies on have changed."""
    if release:
        sentence = f"What the text leaves out is read as the default of {source.framework} {release}."
        return [sentence, *meanings_then(source, release)]
    used = [name for names in reading.settings.values() for name in names if name not in labels]
    changed = changed_defaults(source, dict.fromkeys([*used, *(n for n in source.relied_on if n not in labels)]))
    sentence = f"What the text leaves out is read as the default of {source.tables['release']}"
    if not changed:
        return [f"{sentence}; these have not changed since the first release that is known here."]
    return [f"{sentence}; --release says another. Defaults that changed:", *(f"  {entry}" for entry in changed)]


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
    parser.add_argument("--from", dest="source", choices=names, help="whose text it is; default: by what it starts")
    parser.add_argument("--to", dest="target", required=True, choices=names)
    parser.add_argument("--gpus", type=int, help="that train, where the text does not say it")
    parser.add_argument(
        "--set", dest="variables", action="append", default=[], metavar="NAME=VALUE", help="a variable of the script"
    )
    parser.add_argument("--release", help="of the text: a version, or the day of its commit; default: the pinned one")
    parser.add_argument("--number", type=int, help="which command of the text, if it holds several")
    parser.add_argument("--scale", choices=SCALES, default="full", help="of a run file; default: full")
    parser.add_argument("--stage", type=int, default=1, help="of a run file; default: 1")
    parser.add_argument("--check", action="store_true", help="have the target's own parser read the result")
    print(translated_page(parser.parse_args()))


if __name__ == "__main__":
    run_command(main)
