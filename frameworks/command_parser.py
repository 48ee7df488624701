"""A framework's settings as text holds them, in the names of run files, and back: what translate/ needs.

Names in translation: a *setting* is one of a framework; a *key* is one of a run file (`optimizer.learning_rate`), or of
frameworks/key_meanings.yaml. frameworks/<name>/command_parser.py holds the framework's Dialect, and
command_parser.yaml its tables:

release    name and version
defaults   of the pinned release, beside those in defaults.yaml
renamed    names of earlier releases
implied    switches of earlier releases, with what they set today
cannot     patterns of settings that have no key, with the reason
machine    patterns of settings that concern the machine: files, logs, memory, speed
units      what the numbers of settings count
unwritten  keys that this framework has no setting for, with what it does instead
"""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from contracts.run_file import Run, Stage
from frameworks.script_commands import Command
from system.errors import UserError
from system.yaml_files import read_yaml

FOLDER = Path(__file__).parent
Flags = dict[str, tuple[Any, str]]  # value and key of each setting, as the adapters give them


@dataclass
class Reading:
    """What a text says, under keys."""

    stated: dict[str, Any]  # by setting, under today's name
    defaults: Mapping[str, Any]  # by setting
    common: dict[str, Any] = field(default_factory=dict)  # by key
    settings: dict[str, tuple[str, ...]] = field(default_factory=dict)  # that each key comes from
    reasons: dict[str, str] = field(default_factory=dict)  # by setting: why it cannot be expressed
    idle: dict[str, str] = field(default_factory=dict)  # by setting: why it has no effect

    def get(self, setting: str) -> Any:
        """The stated value, or the default."""
        return self.stated.get(setting, self.defaults.get(setting))

    def number(self, setting: str) -> Any:
        """The same, of a setting that is calculated with; raises UserError for a text."""
        value = self.get(setting)
        if isinstance(value, str):
            unknown = re.search(r"\$\{?(\w+)", value)
            remedy = f"add --set {unknown[1]}=NUMBER" if unknown else "correct it"
            raise UserError(f"{setting} should be a number, but is '{value}'; {remedy}")
        return value

    def put(self, key: str, value: Any, *settings: str) -> None:
        """Note a value of a key and the settings that it comes from; None means that there is no such thing."""
        if value is not None:
            self.common[key], self.settings[key] = value, settings

    def put_all(self, key: str, settings: Sequence[str]) -> None:
        """The same of a key that is in several settings, such as those of policy and critic; the first decides."""
        value = self.get(settings[0])
        self.put(key, value, *settings)
        for name in settings[1:]:
            if name in self.stated and self.stated[name] != value:
                self.reasons[name] = f"run files have one value for this and {settings[0]}, which is {value}"

    def put_stated(self, key: str, setting: str) -> None:
        """The same of a setting whose default has no meaning elsewhere."""
        if setting in self.stated:
            self.put(key, self.stated[setting], setting)

    def put_mapped(self, key: str, setting: str, known: Mapping[Any, str]) -> None:
        """The same of a choice; one that is not known has no key."""
        value = self.get(setting)
        if value in known.values():
            self.put(key, next(ours for ours, theirs in known.items() if theirs == value), setting)
        elif setting in self.stated:
            self.reasons[setting] = f"'{value}' has no counterpart"

    def put_batch(self, step: float, update: float, group: float, settings: Sequence[str]) -> None:
        """Note the batch, which every framework counts in its own units.

        Args:
            step: completions that a step samples.
            update: completions behind an update of the weights.
            group: completions per prompt.
            settings: that they come from.

        Raises:
            UserError: an update is no whole number of prompts.
        """
        if update > step:  # earlier releases made one update of what there was
            update = step
        for what, size in (("a step", step), ("an update", update)):
            if not group or size % group or not size:
                raise UserError(
                    f"{what} of {size:g} completions is no whole number of prompts with {group:g} completions each "
                    f"({', '.join(settings)}); correct the batch, or say with --gpus how many GPUs train"
                )
        self.put("batch.prompts_per_step", int(step // group), *settings)
        self.put("batch.prompts_per_update", int(update // group), *settings)
        self.put("batch.samples_per_prompt", int(group), settings[0])


class Dialect(ABC):
    """One framework's."""

    framework: ClassVar[str]
    entry: ClassVar[re.Pattern[str]]  # the word that starts a training
    command: ClassVar[str]  # the same, for messages
    algorithms: ClassVar[Sequence[str]] = ("grpo", "ppo")
    gpus: ClassVar[str | None] = None  # the setting that says how many train, if a command may lack it
    plain: ClassVar[Mapping[str, str]]  # settings that are a key's value as it is
    one_to_one: ClassVar[Mapping[str, Sequence[str]]]  # by key, the adapter's table

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
        """By setting, the pinned release's, as far as they matter."""
        return {name: entry["value"] for name, entry in self.relied_on.items()} | dict(self.tables["defaults"])

    @abstractmethod
    def settings(self, command: Command, folder: Path) -> dict[str, Any]:
        """What a command sets, under the names that it uses.

        Args:
            command: of a script.
            folder: where the script's own files are searched.

        Raises:
            UserError: it names a file that is not there.
        """

    @abstractmethod
    def read(self, reading: Reading) -> None:
        """Note what the settings mean, under keys."""

    def prepared(self, common: Mapping[str, Any]) -> Mapping[str, Any]:
        """The keys before they are rendered: a value that the framework calls otherwise under its own name."""
        return common

    def several(self, values: list[Any]) -> Any:
        """Several training sets as one value; None where there can only be one."""
        del values
        return None

    @abstractmethod
    def render(self, run: Run, stage: Stage) -> Flags:
        """The adapter's settings for a run; raises settings.Refused."""

    @abstractmethod
    def more(self, common: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
        """The settings of the keys `more.…`, which run files do not have, with the key of each."""

    @abstractmethod
    def words(self, flags: Flags) -> list[str]:
        """Settings as words of a command line."""

    @abstractmethod
    def launcher(self, run: Run, stage: Stage) -> list[str]:
        """The words before the settings."""

    @abstractmethod
    def accept(self, run: Run, stage: Stage, flags: Flags) -> None:
        """Raise UserError unless the release's own parser accepts the settings; needs its environment."""


def load(framework: str) -> Dialect:
    """The dialect of a framework."""
    found: Dialect = importlib.import_module(f"frameworks.{framework}.command_parser").DIALECT
    return found
