"""A framework's command as keys of run files, and back: what translate/ needs of a framework.

Names in translation: a *setting* is one of a framework; a *key* is one of a run file (`optimizer.learning_rate`), or of
frameworks/key_meanings.yaml. frameworks/<name>/command_parser.py holds the framework's CommandParser, and
command_parser.yaml its tables:

release    name and version
renamed    names of earlier releases; a star stands for all below a name; of two new names the second is the critic's
implied    switches of earlier releases, with what they set today
chosen     choices of earlier releases by their values, with what they set today
cannot     patterns of settings that have no key, with the reason
weights_and_data  those of them that choose these besides their names; a run file has its own
machine    settings that concern the machine: files, logs, memory, speed; each by its name, "*" for a whole group
gone       values of settings that the release refuses, with what it does instead
sums       settings that are the sum of others, of which earlier releases had some and today's has not
needed     settings that a command has to state, with the default of earlier releases
kl_in_reward, kept_groups  what it does with a KL term in the reward, and which groups dynamic_sampling keeps
averaged_over_tokens  terms of the loss that it averages over all tokens, whatever loss_aggregation says
units      what the numbers of settings count
unwritten  keys that this framework has no setting for, with what it does instead
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

import yaml

from contracts.run_file import Run, Stage
from frameworks import adapter
from frameworks.command_reading import Reading
from frameworks.command_settings import Flags
from system.yaml_files import read_yaml

FOLDER = Path(__file__).parent
_DIGITS, _EXPONENT = r"\d(?:_?\d)*", r"(?:e[+-]?\d(?:_?\d)*)?"
_NUMBER = re.compile(
    rf"[+-]?(?:(?:0|(?!0){_DIGITS})(?:\.(?:{_DIGITS})?)?{_EXPONENT}|\.{_DIGITS}{_EXPONENT}|inf|nan)",
    re.ASCII | re.IGNORECASE,
)
_QUOTED = re.compile(r"""(['"])((?:\\.|(?!\1)[^\\])*)\1""", re.DOTALL)
EXPORTED = "export "  # before the name of an environment variable among settings
_CONSTANTS = {"true": True, "false": False, "null": None}  # in any case, as Hydra and argparse's users have them


def set_options(names: Sequence[str]) -> str:
    """What the reader adds to say variables of a script."""
    return " ".join(f"--set {name}=…" for name in names)


@dataclass
class ScriptCommand:
    """A command of a script, as words."""

    launcher: list[str]  # before the training's module or script
    arguments: list[str]  # after it
    program: str = ""  # the module or script
    environment: dict[str, str] = field(default_factory=dict)  # variables that were set for it
    files: Mapping[str, str] = field(default_factory=dict)  # texts of those that it names and the script has written
    left_open: Sequence[str] = ()  # what the script does not decide of the arguments, as a shell writes it


class CommandParser(ABC):
    """Between the commands of one framework and keys."""

    framework: ClassVar[str]
    entry: ClassVar[re.Pattern[str]]  # the word that starts a training
    command: ClassVar[str]  # the same, for messages
    algorithms: ClassVar[Sequence[str]] = ("grpo", "ppo")
    gpus: ClassVar[str | None] = None  # the setting that says how many train, if a command may lack it
    unconverted: ClassVar[Mapping[str, str]]  # by key, the setting that has the key's value as it is
    one_to_one: ClassVar[Mapping[str, Sequence[str]]]  # by key, the table of command.py
    extra: ClassVar[Mapping[str, str]]  # of the keys `more.…`, which run files do not have, those that are one setting
    policy: ClassVar[str] = ""  # the beginning of the policy's settings, in whose place a critic's have `critic.`

    # By the framework's name, the name in objectives.yaml: every estimator of advantages and policy loss it has.
    estimators: ClassVar[Mapping[str, str]]
    losses: ClassVar[Mapping[str, str]]
    says_none: ClassVar[bool] = False  # whether a command can state that a setting has no value
    why_without: ClassVar[Mapping[str, str]] = {}  # keys `more.…` that it cannot state with others, with the reason
    notes: ClassVar[Mapping[str, str]] = {}  # keys that depend on what no command says, with how
    not_in_command: ClassVar[Mapping[str, str]] = {}  # keys that the adapter sets otherwise, with how

    @cached_property
    def tables(self) -> dict[str, Any]:
        """command_parser.yaml."""
        return read_yaml(FOLDER / self.framework / "command_parser.yaml")

    @cached_property
    def _defaults_file(self) -> dict[str, Any]:
        return read_yaml(FOLDER / self.framework / "defaults.yaml")

    @property
    def relied_on(self) -> dict[str, Any]:
        """The entries of defaults.yaml."""
        return dict(self._defaults_file["defaults"])

    @property
    def no_effect(self) -> list[str]:
        """Patterns of settings that concern the machine, or that have an effect with others alone, of defaults.yaml."""
        return list(self._defaults_file["no_effect"])

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """By setting of the pinned release, its default: released_settings.json; and how many GPUs train."""
        file = FOLDER / self.framework / "released_settings.json"
        settings: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return settings | ({self.gpus: 1} if self.gpus else {})

    @cached_property
    def machine(self) -> tuple[frozenset[str], tuple[str, ...]]:
        """Settings that concern the machine alone, and the beginnings of those that do as a whole group."""
        names = {
            f"{under}.{name}" if under else name
            for group in self.tables["machine"] for under in group["under"] for name in group["names"]
        }  # fmt: skip
        groups = tuple(name.removesuffix("*") for name in names if name.endswith("*"))
        return frozenset(names), groups

    def todays_names(self, name: str, settings: Mapping[str, Any]) -> list[str]:
        """A setting's names in the pinned release, of one that an earlier release may have called otherwise.

        Args:
            name: of the setting.
            settings: of the text, by the names that it uses.
        """
        renamed: dict[str, str | list[str]] = self.tables["renamed"]
        if name in renamed:
            new = renamed[name]
            return [new] if isinstance(new, str) else new if self.has_critic(settings) else new[:1]
        for pattern, new in renamed.items():
            if pattern.endswith(".*") and isinstance(new, str) and name.startswith(pattern[:-1]):
                return [new[:-1] + name.removeprefix(pattern[:-1])]
        return [name]

    def counting_name(self, name: str, meant: Mapping[str, Any]) -> str:
        """Of several names in a text that are one setting today, the one whose value counts.

        Args:
            name: of the setting, today's.
            meant: by name in the text, what it sets today.
        """
        return name if name in meant else [*meant][-1]

    def has_critic(self, settings: Mapping[str, Any]) -> bool:
        """Whether what a text sets trains a critic."""
        del settings
        return "ppo" in self.algorithms

    def is_machine(self, name: str) -> bool:
        """Whether a setting concerns the machine alone."""
        names, groups = self.machine
        return name in names or name.startswith(groups)

    def settings_of_command(self, command: ScriptCommand, folder: Path) -> dict[str, Any]:
        """What a command sets, under the names that it uses.

        Args:
            command: of a script.
            folder: where the script's own files are searched.

        Raises:
            UserError: it names a file that is not there.
        """
        del folder
        return options(command.arguments)

    def settings_of_file(self, content: Mapping[Any, Any], folder: Path) -> dict[str, Any]:
        """The same of a YAML configuration that is the whole text."""
        del folder
        return {str(name): value for name, value in content.items()}

    @abstractmethod
    def read(self, reading: Reading) -> None:
        """Note what the settings mean, under keys."""

    def own_values(self, common: Mapping[str, Any]) -> Mapping[str, Any]:
        """The keys before they are rendered: a value that the framework calls otherwise under its own name."""
        return common

    def several_datasets(self, names: list[Any]) -> Any:
        """Several training sets as one value; None where there can only be one."""
        del names
        return None

    def stated_settings(self, run: Run, stage: Stage) -> Flags:
        """The settings of a run's command; raises run_settings.Refused."""
        return adapter.load(self.framework).command.stated_settings(run, stage)

    def extra_settings(self, common: Mapping[str, Any]) -> Flags:
        """The settings of the keys `more.…`, with the key of each; a critic has the policy's, or its own."""
        flags: Flags = {}
        for key, setting in self.extra.items():
            if key in common:
                flags[setting] = (common[key], key)
                if self.policy and setting.startswith(self.policy) and common["algorithm"] == "ppo":
                    flags["critic." + setting.removeprefix(self.policy)] = (common[key], key)
        return flags

    def as_arguments(self, flags: Flags) -> list[str]:
        """Settings as words of a command line."""
        return adapter.load(self.framework).command.command_line(flags)

    def meant_then(self, settings: Mapping[str, Any], earlier: Mapping[str, Any]) -> Mapping[str, Any]:
        """Defaults of an earlier release for a text, where one depended on another setting.

        Args:
            settings: of the text.
            earlier: by setting, the release's default where it is another than today's.
        """
        del settings
        return earlier

    def name_in_command(self, name: str, stated: Collection[str]) -> str | None:
        """A setting as a command of the pinned release writes it; None if the release has no such setting.

        Args:
            name: of the setting, today's.
            stated: by today's names, all that the command states.
        """
        del stated
        return name if name in self.defaults else None

    def needed(self, stated: Mapping[str, Any]) -> dict[str, Any]:
        """Settings that a command with others, by their values, has to state today, with their values."""
        del stated
        return dict(self.tables.get("needed", {}))

    def why_not_in_command(self, name: str, value: Any) -> str | None:
        """Why no command can state a value of a text; None if one can."""
        del name, value
        return None

    def is_launcher(self, name: str) -> bool:
        """Whether a setting belongs to the words before the framework's own settings."""
        del name
        return False

    def launcher_of_text(self, settings: Mapping[str, Any]) -> list[str]:
        """The words before the settings of a text of the same framework."""
        del settings
        return self.command.split()

    def launcher(self, run: Run, stage: Stage) -> list[str]:
        """The words before the settings."""
        del run, stage
        return self.command.split()


def options(arguments: list[str]) -> dict[str, Any]:
    """Options such as `--name value`, `--name=value`, `--switch`, by name; several values make a list."""
    texts_of: dict[str, list[str]] = {}
    name = ""
    for word in arguments:
        if re.match(r"--?[A-Za-z]", word):
            name, equals, text = word.lstrip("-").partition("=")
            texts_of[name] = [text] if equals else []
        elif name:
            texts_of[name].append(word)
    return {name: _value_of_option([_value_of_word(text) for text in texts]) for name, texts in texts_of.items()}


def _value_of_option(values: list[Any]) -> Any:
    """What an option's words make: a list, one value, or of a switch True."""
    return values if len(values) > 1 else values[0] if values else True


def _value_of_word(text: str) -> Any:
    """The same as value_of_text; braces are JSON, or a text such as the placeholder `{your_dataset}`."""
    if text.startswith("{"):
        try:
            json.loads(text)
        except ValueError:
            return text
    return value_of_text(text)


def value_of_text(text: str) -> Any:
    """A word as the number, truth value, list or text that it stands for, by Hydra's grammar."""
    if _NUMBER.fullmatch(text):
        return float(text) if set(text.lower()) & set(".ein") else int(text)
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if quoted := _QUOTED.fullmatch(text):
        return quoted[2].replace("\\" + quoted[1], quoted[1])
    if not text.startswith(("[", "{")):
        return text
    try:
        return _value_of_yaml(yaml.load(_spaced(text), yaml.BaseLoader))
    except yaml.YAMLError:
        return text


def _spaced(text: str) -> str:
    """A text in brackets with a space after the colon of each name, which YAML needs and Hydra does not."""
    spaced, brackets, quote, before_colon = "", "", "", False
    for character in text:
        if quote or character in "'\"":
            quote = "" if character == quote else quote or character
        elif character in "{[,":
            brackets += character.strip(",")
            before_colon = brackets[-1:] == "{"
        elif character in "]}":
            brackets, before_colon = brackets[:-1], False
        elif character == ":" and before_colon:
            character, before_colon = ": ", False
        spaced += character
    return spaced


def _value_of_yaml(content: Any) -> Any:
    """What is written in brackets, whose parts are texts; a text in quotes remains one."""
    if isinstance(content, list):
        return [_value_of_part(part) for part in content]
    return {name: _value_of_part(part) for name, part in content.items()} if isinstance(content, dict) else content


def _value_of_part(part: Any) -> Any:
    return value_of_text(part) if isinstance(part, str) else _value_of_yaml(part)


@cache
def load(framework: str) -> CommandParser:
    """The parser of a framework's commands; raises UserError for a framework that is unknown or has none."""
    module = adapter.load_module(framework, "command_parser", "cannot be translated from or to")
    parser: CommandParser = module.COMMAND_PARSER
    return parser
