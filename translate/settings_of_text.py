"""What a text sets: a script, a command, settings alone, or a YAML configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from frameworks.command_parser import EXPORTED, CommandParser, ScriptCommand
from system.errors import UserError
from system.yaml_files import read_yaml_text
from translate import script_commands
from translate.translation import part_is_in

COMMENT_LINE = re.compile(r"^\s*#.*$", re.MULTILINE)
SAME_SHELL = ("source", ".")
SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")


def words_in_pairs(text: str) -> Iterator[tuple[str, str]]:
    """The words of a script as they are written, each after the one before it; empty before the first of a line."""
    for line in COMMENT_LINE.sub("", text).replace("\\\n", " ").split("\n"):
        yield from pairwise(["", *(word.strip("\"'`;()") for word in line.split())])


class TextSettings(dict[str, Any]):
    """The settings of a text by name; `left_open` is what it does not decide of them, as a shell writes it."""

    left_open: Sequence[str] = ()


def settings_of_text(
    parser: CommandParser, text: str, folder: Path, variables: Mapping[str, str], number: int | None
) -> TextSettings:
    """The settings in a text, under the names that it uses.

    Args:
        parser: of the text.
        text: a script, a command, settings alone, or a YAML configuration.
        folder: of the script.
        variables: that the text does not assign.
        number: which of several commands, from 1.

    Raises:
        UserError: the text holds no command of the framework, or several and no number says which.
    """
    if (content := _yaml_mapping(text)) is not None:
        return _alone(parser.settings_of_file(content, folder), text)
    framework, commands = parser.framework, script_commands.training_commands(text, parser.entry, variables, folder)
    if not commands:
        if settings := _without_command(parser, text, folder):
            return _alone(settings, text)
        sentence = f"the text holds no command of {framework} ({parser.command}); paste it, or its settings"
        raise no_training(sentence, "no-command", text)
    count = len(commands)
    if number is None and count > 1:
        raise UserError(
            f"the text holds {count} commands of {framework}; say which with --number 1 to {count}",
            code="several-commands",
            commands=count,
        )
    if not 1 <= (number or 1) <= count:
        raise UserError(f"--number should be from 1 to {count}, not {number}", code="no-such-number", number=number)
    command = commands[(number or 1) - 1]
    exported = {EXPORTED + name: value for name, value in command.environment.items()}
    result = TextSettings(exported | parser.settings_of_command(command, folder))
    values = [str(value) for value in result.values()]
    result.left_open = [part for part in command.left_open if any(part_is_in(part, value) for value in values)]
    return result


def no_training(sentence: str, code: str, text: str) -> UserError:
    """The refusal of a text that starts no training; it names the scripts that the text may start."""
    pairs = words_in_pairs(text)
    scripts = list(dict.fromkeys(word for before, word in pairs if word.endswith(SCRIPTS) and before not in SAME_SHELL))
    more = f"; or translate {' or '.join(scripts)}, which it may start" if scripts else ""
    return UserError(sentence + more, code=code, scripts=scripts)


def _yaml_mapping(text: str) -> dict[Any, Any] | None:
    """What a configuration holds; None of another text, such as a command with a colon."""
    try:
        content = read_yaml_text(text, "the text")
    except UserError as error:
        if error.code == "repeated-key":
            raise
        return None
    is_one = isinstance(content, dict) and all(re.fullmatch(r"[\w.]+", str(key)) for key in content)
    return content if is_one else None


def _alone(settings: dict[str, Any], text: str) -> TextSettings:
    alone = TextSettings(settings)
    alone.left_open = [f"${name}" for name in dict.fromkeys(re.findall(r"\$\{?(\w+)(?![\w.:])", text))]
    return alone


def _without_command(parser: CommandParser, text: str, folder: Path) -> dict[str, Any]:
    """Settings alone as words."""
    arguments = script_commands.plain_words(text)
    if not arguments or not all(map(_is_setting, arguments[:1])) or not _are_settings(arguments):
        return {}
    return parser.settings_of_command(ScriptCommand([], arguments), folder)


def _is_setting(word: str) -> bool:
    return bool(re.match(r"--[A-Za-z]|[+~]{0,2}\w+(\.\w+)+=", word))


def _are_settings(arguments: list[str]) -> bool:
    """Whether words are settings, each with the values of its option; a shell's own signs are none."""
    return not any(word in (";", "&&", "||", "|", "&") or word.endswith(";") for word in arguments) and all(
        _is_setting(word) or before.startswith("--") or not _is_setting(before) for before, word in pairwise(arguments)
    )
