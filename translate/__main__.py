"""Translate a training command of one framework into the settings of another, or into those of a run file.

    python -m translate.__main__ --from verl train.sh --to trl
    python -m translate.__main__ --from openrlhf "python3 -m openrlhf.cli.train_ppo_ray --actor.adam.lr 1e-6" --to trl
    python -m translate.__main__ --from trl grpo.yaml --gpus 8 --to run-file
    python -m translate.__main__ --from run-file tinyzero/ppo-3b --to openrlhf

Nothing is run. Every setting of the text appears in what is printed: translated, with its meaning; the same by default;
of the machine alone; or as one that cannot be expressed, with the reason. Where the defaults differ, the source's is
stated. With --check the target release's own parser reads the result, for which its environment's Python is needed.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from contracts.run_file import SCALES, framework_names
from frameworks import command_parser as dialects
from frameworks import script_commands
from frameworks.command_parser import Dialect, Reading
from recipes.runs import load_run
from system.errors import UserError, run_command
from translate.rendering import GROUPS, Rendering, as_run
from translate.translation import EXPORTED, Translation, check, meanings, read, same, translate

RUN_FILE = "run-file"


def given_by(
    dialect: Dialect, text: str, folder: Path, variables: Mapping[str, str], number: int | None
) -> dict[str, Any]:
    """The settings in a text, under the names that it uses.

    Args:
        dialect: of the text.
        text: a script, a command, settings alone, or a YAML configuration.
        folder: of the script.
        variables: that the text does not assign.
        number: which of several commands, from 1.

    Raises:
        UserError: the text holds no command of the framework, or several and no number says which.
    """
    found = script_commands.commands(text, dialect.entry, variables)
    if not found:
        settings = _without_command(dialect, text, folder, variables)
        if not settings:
            raise UserError(
                f"the text holds no command of {dialect.framework} ({dialect.command}); paste it, or its settings"
            )
        return settings
    if number is None and len(found) > 1:
        raise UserError(
            f"the text holds {len(found)} commands of {dialect.framework}; say which with --number 1 to {len(found)}"
        )
    if not 1 <= (number or 1) <= len(found):
        raise UserError(f"--number should be from 1 to {len(found)}, not {number}")
    command = found[(number or 1) - 1]
    variables_for_it = {EXPORTED + name: value for name, value in command.environment.items()}
    return variables_for_it | dialect.settings(command, folder)


def _without_command(dialect: Dialect, text: str, folder: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    """Settings alone: a YAML mapping, or words."""
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        content = None
    if isinstance(content, dict):
        return {str(name): value for name, value in content.items()}
    words = script_commands.plain_words(text, variables)
    looks_so = [word for word in words if word.startswith("--") or "=" in word.partition(" ")[0]]
    if not looks_so or words[0] != looks_so[0]:
        return {}
    return dialect.settings(script_commands.Command([], words), folder)


def of_run(name: str, scale: str, stage: int) -> tuple[str, list[str]]:
    """A run's framework, and its own command as words.

    Args:
        name: of the run, or the path of a run file.
        scale: of its two.
        stage: from 1.

    Raises:
        UserError: there is no such run or stage.
    """
    run = load_run(name, scale)
    if not 1 <= stage <= len(run.stages):
        raise UserError(f"--stage should be from 1 to {len(run.stages)}, not {stage}")
    dialect, chosen = dialects.load(run.framework), run.stages[stage - 1]
    return run.framework, [*dialect.launcher(run, chosen), *dialect.words(dialect.render(run, chosen))]


def as_text(found: Translation, target: Dialect) -> str:
    """The page that is printed: settings as a bash array with comments, the command, and the lists."""
    rows = [(_written(target, line.setting, line.value), line) for line in found.lines]
    width = min(60, max((len(words) for words, _ in rows), default=0))
    text = ["settings=("]
    for words, line in rows:
        unit = target.tables["units"].get(line.setting)
        parts = [
            meanings()[line.key],
            f"in {unit}" if unit else "",
            f"from {line.source}" if line.source else "",
            line.note,
        ]
        comment = (
            "; ".join(part for part in parts if part).replace("(", "[").replace(")", "]")
        )  # a bracket would end it
        text.append(f"    {words.ljust(width)}  # {comment}")
    text += [")", f'{shlex.join(found.launcher)} "${{settings[@]}}"']
    for title, entries in (
        ("The same by default, and left out", [f"{what}, since {why}" for what, why in found.same]),
        ("Concerns the source's machine, files and logs alone", found.machine),
        ("Cannot be expressed", [f"{what}, because {why}" for what, why in found.cannot]),
    ):
        text += ["", f"# {title}: {len(entries) or 'none'}", *(f"#   {entry}" for entry in entries)]
    return "\n".join(text)


def _written(target: Dialect, setting: str, value: Any) -> str:
    return shlex.join(target.words({setting: (value, "")}))


def as_run_file(source: Dialect, reading: Reading, labels: Mapping[str, list[str]]) -> str:
    """What a run file holds at full scale, in YAML; what has no key is under `native`, if the adapter takes it."""
    rendering = Rendering(source, reading.common)
    values: dict[str, Any] = {key: value for key, value in rendering.common.items() if key in ("model", "steps")}
    for key, value in rendering.common.items():
        group, _, name = key.partition(".")
        if name and group != "more":
            values.setdefault(group, {})[name] = value
    keys = {
        name for key, names in reading.settings.items() for name in names
        if key in ("algorithm", "model", "steps") or key.partition(".")[0] in (*GROUPS, "hardware")
    } | {source.plain["model"]}  # fmt: skip
    adapters = source.render(*as_run(rendering.common, source.framework))

    def is_native(name: str) -> bool:
        if name not in source.defaults or name in keys or name in adapters or name in reading.idle:
            return False
        return not same(reading.stated[name], source.defaults[name])

    native = {name: reading.stated[name] for name in labels if is_native(name)}
    if native:
        values["native"] = native
    left = list[str]()
    for name, texts in labels.items():
        reason = reading.reasons.get(name)
        if name not in native and (reason or name not in keys):
            left += [f"# Not in a run file: {text}{f': {reason}' if reason else ''}" for text in texts]
    left += [f"# {key}: {note}" for key, note in rendering.notes.items()]
    missing = [name for name in ("dataset", "steps") if name not in values]
    head = (
        f"# To be added: title, prompt, rewards, demo; under full: {', '.join(missing)}, checkpoints, evaluation, and\n"
        "# hardware's cpus, memory_gb and hours."
    )
    content = {"framework": source.framework, "algorithm": reading.common["algorithm"], "full": values}
    return "\n".join([head, yaml.safe_dump(content, sort_keys=False, allow_unicode=True), *left])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m translate.__main__", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    arguments = parser.parse_args()
    print(translated(arguments))


def translated(arguments: argparse.Namespace) -> str:
    """What the command prints."""
    source, file = arguments.source, Path(arguments.text)
    if source == RUN_FILE:
        source, words = of_run(arguments.text, arguments.scale, arguments.stage)
        text, folder = shlex.join(words), Path()
    elif arguments.text == "-":
        text, folder = sys.stdin.read(), Path()
    elif "\n" not in arguments.text and len(arguments.text) < 4096 and file.is_file():
        text, folder = file.read_text(encoding="utf-8"), file.parent
    elif "\n" not in arguments.text and " " not in arguments.text.strip():
        raise UserError(f"there is no file {arguments.text}; name a script, or quote a whole command")
    else:
        text, folder = arguments.text, Path()
    variables = dict(_assignment(word) for word in arguments.variables)
    dialect = dialects.load(source)
    given = given_by(dialect, text, folder, variables, arguments.number)
    if arguments.gpus:
        if dialect.gpus is None:
            raise UserError(f"a command of {dialect.framework} says how many GPUs it takes; leave --gpus out")
        given[dialect.gpus] = arguments.gpus
    reading, labels = read(dialect, given)
    if arguments.target == RUN_FILE:
        return as_run_file(dialect, reading, labels)
    target = dialects.load(arguments.target)
    found, rendering = translate(dialect, target, reading, labels)
    if arguments.check:
        check(rendering)
    return as_text(found, target) + (
        f"\n\nAccepted by the parser of {target.tables['release']}." if arguments.check else ""
    )


def _assignment(word: str) -> tuple[str, str]:
    name, given, value = word.partition("=")
    if not given or not name.isidentifier():
        raise UserError(f"--set takes NAME=VALUE, not '{word}'")
    return name, value


if __name__ == "__main__":
    run_command(main)
