"""What a command or a text of settings says, under keys of run files; see command_parser.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from system.errors import UserError


@dataclass
class Reading:
    """What a text says, under keys."""

    stated: dict[str, Any]  # by setting, under today's name
    defaults: Mapping[str, Any]  # by setting
    common: dict[str, Any] = field(default_factory=dict)  # by key
    settings: dict[str, tuple[str, ...]] = field(default_factory=dict)  # that each key comes from
    reasons: dict[str, str] = field(default_factory=dict)  # by setting: why it cannot be expressed
    idle: dict[str, str] = field(default_factory=dict)  # by setting: why it has no effect
    deciding: set[str] = field(default_factory=set)  # settings whose values decided what was noted

    def get(self, setting: str) -> Any:
        """The stated value, also null, or the default; raises UserError for a value of another kind than that."""
        value, default = self._value(setting), self.defaults.get(setting)
        if isinstance(default, list) and default and all(type(part) in (int, float) for part in default):
            return self.numbers(setting, len(default))
        if isinstance(default, str) and isinstance(value, list | dict):
            raise UserError(f"{setting} should be one word, but is '{value}'; correct it", code="not-a-word")
        return value

    def one_or_many(self, setting: str) -> list[str]:
        """The words of a setting that takes any number of them; raises UserError for null."""
        value = self._value(setting)
        self._refuse_null(setting, "one or several words", "not-a-word")
        return [str(part) for part in (value if isinstance(value, list) else [value])]

    def numbers(self, setting: str, count: int, *, or_one: bool = False) -> Any:
        """So many numbers, or one alone, or None where that is the default; raises UserError for anything else."""
        value = self._value(setting)
        if or_one and type(alone := value[0] if isinstance(value, list) and len(value) == 1 else value) in (int, float):
            return [alone]
        self._refuse_null(setting, f"{count} numbers")
        numeric = isinstance(value, list) and [type(part) in (int, float) for part in value] == [True] * count
        if value is not None and not numeric:
            raise UserError(f"{setting} should be {count} numbers, but is '{value}'; correct it", code="not-a-number")
        return value

    def number(self, setting: str, *, or_null: bool = False) -> Any:
        """The same, of a setting that is calculated with; raises UserError for a text, a list, or null.

        Args:
            setting: by name.
            or_null: null has a meaning, though it is not the default.
        """
        value = self._value(setting)
        if not or_null:
            self._refuse_null(setting, "a number")
        if isinstance(value, str | list | dict):
            of_shell = re.sub(r"\$\{\w+\.[^}]*\}", "", str(value))  # without what Hydra fills in
            variable = re.search(r"\$(?:\(\([^A-Za-z_)]*|\{)?([A-Za-z_]\w*|\d)", of_shell)
            output = "write what it prints in its place" if re.search(r"\$\(|`", of_shell) else "correct it"
            remedy = f"add --set {variable[1]}=NUMBER" if variable else output
            raise UserError(
                f"{setting} should be a number, but is '{value}'; {remedy}",
                code="not-a-number",
                setting=setting,
                variable=variable[1] if variable else None,
            )
        return value

    def _value(self, setting: str) -> Any:
        self.deciding.add(setting)
        return self.stated.get(setting, self.defaults.get(setting))

    def _is_null(self, setting: str) -> bool:
        """Whether null is stated of a setting that has a value by default."""
        return setting in self.stated and self.stated[setting] is None and self.defaults.get(setting) is not None

    def _refuse_null(self, setting: str, wanted: str, code: str = "not-a-number") -> None:
        if self._is_null(setting):
            raise UserError(f"{setting} should be {wanted}, but is null; correct it", code=code, setting=setting)

    def note(self, key: str, value: Any, *settings: str) -> None:
        """Note a value of a key and the settings that it comes from; None means that there is no such thing.

        That a text states so, where there is one by default, cannot be expressed.
        """
        self.deciding.update(settings)
        for name in settings:
            if value is not None and self.stated.get(name) is value and type(self.defaults.get(name)) in (int, float):
                self.number(name)
        if value is not None:
            self.common[key], self.settings[key] = value, settings
        else:
            self.reasons |= {name: "others need a value" for name in settings if self._is_null(name)}

    def note_all(self, key: str, settings: Sequence[str], value_of: Callable[[str], Any] | None = None) -> None:
        """The same of a key that is in several settings, such as those of policy and critic; the first decides.

        What a critic has otherwise, also by default, is a key of its own, `more.critic_…`.

        Args:
            key: of the settings.
            settings: the policy's first.
            value_of: what a setting means; default: its value.
        """
        values = {name: (value_of or self.get)(name) for name in settings}
        first = values[settings[0]]
        same = [name for name, value in values.items() if value in (first, None)]
        self.note(key, first, *same)
        for name in values.keys() - set(same):
            if name.startswith("critic."):
                self.note(f"more.critic_{key.rpartition('.')[2]}", values[name], name)
            elif name in self.stated:
                self.reasons[name] = f"run files have one value for this and {settings[0]}, which is {first}"

    def note_schedules(self, schedules: Mapping[str, tuple[Any, Any]], name: str, end: str) -> None:
        """Note how the learning rate changes, of the policy and, where it does otherwise, of the critic.

        Args:
            schedules: by the group of their settings, the policy's first: the schedule, and where it ends as a share.
            name: of the schedule's setting in its group.
            end: of that of the share.
        """
        (policy, own), *critics = schedules.items()
        same = [policy, *(critic for critic, other in critics if other == own)]
        self.note("optimizer.schedule", own[0], *(f"{group}.{name}" for group in same))
        self.note("more.min_lr_ratio", own[1], *(f"{group}.{end}" for group in same))
        for critic, other in critics:
            if critic not in same:
                self.note("more.critic_schedule", other[0], f"{critic}.{name}")
                self.note("more.critic_min_lr_ratio", other[1], f"{critic}.{end}")

    def note_betas(self, policy: str, critic: str | None) -> None:
        """Note Adam's betas, of two settings that hold both each; the critic's alone where they are others."""
        first, second = self.get(policy)
        shared = [critic] if critic and self.get(critic) == [first, second] else []
        self.note("optimizer.adam_beta2", second, policy, *shared)
        if first != 0.9:
            self.note("more.adam_beta1", first, policy)
        if critic and self.get(critic) != [0.9, second]:
            self.note("more.critic_adam_betas", self.get(critic), critic)

    def note_stated(self, key: str, setting: str) -> None:
        """The same of a setting whose default has no meaning elsewhere."""
        if setting in self.stated:
            self.note(key, self.stated[setting], setting)

    def note_choice(self, key: str, setting: str, known: Mapping[Any, str], value: Any = None) -> None:
        """The same of a choice, by today's name if it is given; one that is not known has no key."""
        value = self.get(setting) if value is None else value
        if value in known.values():
            self.note(key, next(ours for ours, theirs in known.items() if theirs == value), setting)
        elif setting in self.stated:
            self.reasons[setting] = f"'{value}' has no counterpart"

    def note_changed(self, settings_of_keys: Mapping[str, str]) -> None:
        """Note each key whose setting has another value than by default."""
        for key, setting in settings_of_keys.items():
            if (value := self.get(setting)) != self.defaults.get(setting):
                self.note(key, value, setting)

    def note_of_loss(self, settings_of_keys: Mapping[str, str], loss: str, chosen: Any) -> None:
        """The same of settings that one policy loss alone reads.

        Args:
            settings_of_keys: by key.
            loss: that reads them.
            chosen: the loss of the text.
        """
        if chosen == loss:
            self.note_changed(settings_of_keys)
        else:
            self.idle |= dict.fromkeys(settings_of_keys.values(), f"it has no effect with another loss than {loss}")

    def check_batch(self, group: float, settings: Sequence[str], remedy: str = "", **sizes: float) -> None:
        """Raise UserError for a size in completions, by its name, that is no whole number of prompts.

        Args:
            group: completions per prompt.
            settings: that the sizes come from.
            remedy: what may be corrected in place of the batch, behind a comma.
            sizes: by name.
        """
        for unit, size in sizes.items():
            if not group or size % group or not size:
                raise UserError(
                    f"{'an' if unit[0] in 'aeiou' else 'a'} {unit} of {size:g} completions is no whole number of "
                    f"prompts with {group:g} completions each ({', '.join(settings)}); correct the batch{remedy}",
                    code="batch-does-not-divide",
                )

    def note_batch(self, step: float, update: float, group: float, settings: Sequence[str]) -> None:
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
        self.check_batch(group, settings, step=step, update=update)
        self.note("batch.prompts_per_step", int(step // group), *settings)
        self.note("batch.prompts_per_update", int(update // group), *settings)
        self.note("batch.samples_per_prompt", int(group), settings[0])
