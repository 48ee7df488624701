"""What becomes of each setting of a command in another framework."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from contracts.schema_keys import run_keys
from frameworks.command_parser import EXPORTED, FOLDER, CommandParser, set_options
from frameworks.command_reading import Reading
from frameworks.release_defaults import storable_settings, yaml_value
from system.errors import UserError
from system.yaml_files import read_yaml
from translate.rendering import Rendering

KL = ("objective.kl_in", "objective.kl_estimator", "objective.unbiased_kl_gradient")
MEAN = "objective.loss_aggregation"
LONGEST = 100  # characters of a setting of the text
OBJECTIVE = ("algorithm", "objective.estimator", "objective.policy_loss", "objective.kl_in")
LAYOUT = ("rollout.engine", "rollout.gpus", "hardware.gpus", "hardware.nodes", "hardware.sharding")


@dataclass
class Line:
    """A setting of the target."""

    setting: str
    value: Any
    key: str
    source: str  # what the text says; empty: the source's default
    note: str = ""


@dataclass
class Translation:
    """Every setting of a text: in a line, or in one of the lists, each with what it is or why."""

    launcher: list[str]
    source: str  # the text's framework
    lines: list[Line] = field(default_factory=list)
    same: list[tuple[str, str]] = field(default_factory=list)
    machine: list[str] = field(default_factory=list)
    cannot: list[tuple[str, str]] = field(default_factory=list)
    unknown: list[tuple[str, str]] = field(default_factory=list)  # to this translator
    objective: set[str] = field(default_factory=set)  # of `cannot`, those that make another objective of it
    exported: dict[str, str] = field(default_factory=dict)  # environment variables that the command is given


@cache
def key_meanings() -> dict[str, str]:
    """By key, what it means: keys of run files, and what two frameworks have in common besides."""
    return {key.name: key.title for key in run_keys() if key.title} | read_yaml(FOLDER / "key_meanings.yaml")


def todays_settings(parser: CommandParser, settings: Mapping[str, Any]) -> list[tuple[str, Any, dict[str, Any]]]:
    """Settings of any release, each with those of the pinned one that say the same.

    A choice of an earlier release comes after the switch that it belongs to, whose default it may change.
    """
    implied, chosen = parser.tables["implied"], parser.tables.get("chosen", {})
    return [
        (name, value, chosen.get(name, {}).get(str(value)) or (implied.get(name) if value else None)
         or dict.fromkeys(parser.todays_names(name, settings), value))
        for name, value in sorted(settings.items(), key=lambda item: item[0] in chosen)
    ]  # fmt: skip


@dataclass
class TodaysValues:
    """What a text sets, by today's names."""

    values: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)  # that say each value
    idle: dict[str, str] = field(default_factory=dict)  # by text, why it has no effect beside another


def todays_values(parser: CommandParser, settings: Mapping[str, Any]) -> TodaysValues:
    """Settings of any release by today's names; of several that are one today, the parser says which counts."""
    todays, result = todays_settings(parser, settings), TodaysValues()
    shared = parser.tables["implied"].keys() | parser.tables.get("chosen", {}).keys()  # what these say together
    for new in dict.fromkeys(new for _, _, now in todays for new in now):
        meant = {name: now[new] for name, _, now in todays if new in now}
        texts = {name: shortened(f"{name}={settings[name]}") for name in meant}
        counting = parser.counting_name(new, meant)
        result.values[new] = meant[counting]
        says_it = {
            name for name in meant if name == counting or name in shared or same_value(meant[name], meant[counting])
        }
        result.texts[new] = [text for name, text in texts.items() if name in says_it]
        result.idle |= {
            text: f"it has no effect beside {texts[counting]}" for name, text in texts.items() if name not in says_it
        }
    return result


def read_settings(
    parser: CommandParser, settings: Mapping[str, Any], earlier: Mapping[str, Any] | None = None
) -> tuple[Reading, dict[str, list[str]]]:
    """What settings mean, also those under names of earlier releases; and by present name how the text has each.

    Args:
        parser: of the framework.
        settings: as the text has them.
        earlier: by setting, a default that the text's release had and the pinned one has not.
    """
    todays = todays_values(parser, settings)
    reading = Reading(todays.values, {**parser.defaults, **(earlier or {})})
    parser.read(reading)
    reading.idle |= todays.idle
    for key, setting in parser.unconverted.items():
        if key not in reading.common and (key != "epochs" or "steps" not in reading.common):
            reading.note_stated(key, setting)
    return reading, todays.texts | {text: [text] for text in todays.idle}


def refuse_open(reading: Reading, left_open: Sequence[str]) -> None:
    """Ask for what the meaning of other settings depends on; a path or a name may stay open.

    Args:
        reading: of a script.
        left_open: what the script does not decide, as a shell writes it.

    Raises:
        UserError: it is in a value that decides something.
    """
    for name in sorted(reading.deciding & reading.stated.keys()):
        value = reading.stated[name]
        parts = [part for part in left_open if isinstance(value, str) and part_is_in(part, value)]
        is_path = any(name in reading.settings.get(key, ()) for key in ("model", "dataset"))
        if parts and not is_path:
            variables = [part[1:] for part in parts if part[1:].isidentifier() or part[1:].isdigit()]
            remedy = f"add {set_options(variables)}" if variables else "write its value in its place"
            raise UserError(
                f"{name} is {value}, which the text does not decide; {remedy}", code="open-setting", setting=name
            )


def part_is_in(part: str, value: str) -> bool:
    """Whether a value has what is left open, such as `$N`, also as `${N%.sh}` or in a sum."""
    return part in value or ("$" in value and bool(re.search(rf"(?<!\w){re.escape(part[1:])}(?!\w)", value)))


def shortened(text: str) -> str:
    """At most LONGEST characters, in one line."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def same_value(one: Any, other: Any) -> bool:
    """Whether two values of settings are the same."""
    return bool(yaml_value(one) == yaml_value(other))


def translate_settings(
    source: CommandParser, target: CommandParser, reading: Reading, labels: Mapping[str, list[str]]
) -> tuple[Translation, Rendering]:
    """Every setting of a text in another framework.

    Args:
        source: whose settings were read.
        target: whose settings are wanted.
        reading: what they mean.
        labels: how the text has each setting.

    Raises:
        UserError: the batch does not fit the target.
    """
    sorting = _Sorting(source, target, reading, labels)
    for setting, (value, key) in sorting.rendering.flags.items():
        sorting.add_line(setting, value, key)
    sorting.written = {line.key for line in sorting.translation.lines}
    for name, texts in labels.items():
        sorting.list_setting(name, ", ".join(texts))
    sorting.list_defaults()
    return sorting.translation, sorting.rendering


class _Sorting:
    """Sorts the settings of a text into lines and lists."""

    def __init__(
        self, source: CommandParser, target: CommandParser, reading: Reading, labels: Mapping[str, list[str]]
    ) -> None:
        self.source, self.target, self.reading, self.labels = source, target, reading, labels
        self.rendering = Rendering(target, reading.common)
        self.rendering.refused |= other_kl_in_reward(source, target, reading.common)
        if reading.common.get("objective.dynamic_sampling"):
            self.rendering.refused |= told_apart(source, target, "kept_groups", "objective.dynamic_sampling")
        self.rendering.refused |= other_means(source, target, reading.common, self.rendering.common)
        self.translation = Translation(self.rendering.launcher, source.framework)
        self.left_out: dict[str, str] = {}  # by key, the default that makes a line needless
        self.written: set[str] = set()  # keys that have a line

    def settings_of(self, key: str) -> tuple[str, ...]:
        """The source's settings that a key comes from."""
        own = self.source.unconverted.get(key)
        return self.reading.settings.get(key, (own,) if own else ())

    def add_line(self, setting: str, value: Any, key: str) -> None:
        """Add a setting of the target, unless it is the adapter's own, of no effect, or so by default."""
        not_in_text = key in self.source.unconverted and key not in self.rendering.common
        if not_in_text or key not in key_meanings() or self._has_no_effect(setting, key):
            return
        has_default, default = setting in self.target.defaults, self.target.defaults.get(setting)
        is_default = has_default and same_value(value, default)
        note, is_layout = self.rendering.notes.get(key, ""), key in LAYOUT
        if (is_default or not self.target.as_arguments({setting: (value, key)})) and not (
            note or key in ("hardware.gpus", "hardware.nodes")
        ):
            self.left_out.setdefault(key, f"{setting} is {value} by default")
            return
        texts = [text for name in self.settings_of(key) for text in self.labels.get(name, [])]
        if not texts and not note and not is_layout and has_default and not is_default:
            note = f"default differs: stated, it would be {default}"
        source = "" if is_layout else ", ".join(dict.fromkeys(texts))
        self.translation.lines.append(Line(setting, value, key, source, note))

    def _has_no_effect(self, setting: str, key: str) -> bool:
        """Whether a setting is of a critic or a KL term that is not there."""
        common = self.rendering.common
        if setting.startswith("critic.") and common["algorithm"] != "ppo":
            return True
        in_text = any(name in self.reading.stated for name in self.reading.settings.get(key, ()))
        return key in KL and not common.get("objective.kl_coefficient") and not in_text

    def list_setting(self, name: str, text: str) -> None:
        """Put a setting of the text into the list where it belongs, unless a line has it."""
        translation, rendering, unwritten = self.translation, self.rendering, self.target.tables["unwritten"]
        keys = [key for key, settings in self.reading.settings.items() if name in settings]
        part = next((key for key in keys if key in rendering.refused), None)
        refused = rendering.refused[part] if part else None
        if part and (name != self.settings_of(part)[0] or any(key in self.written for key in keys)):  # it says more
            refused = f"{key_meanings()[part]}: {refused}"
        if keys and all(key in LAYOUT for key in keys):
            translation.machine.append(text)
        elif reason := self.reading.reasons.get(name) or refused:
            translation.cannot.append((text, reason))
            if any(key in OBJECTIVE for key in keys):
                translation.objective.add(text)
        elif any(key in self.written for key in keys):
            pass
        elif reason := next((self.left_out[key] for key in keys if key in self.left_out), None):
            translation.same.append((text, reason))
        elif reason := next((unwritten[key] for key in keys if key in unwritten), None):
            translation.cannot.append((text, reason))
        elif keys:
            translation.same.append((text, f"{self.target.tables['release']} needs no setting of its own for it"))
        elif reason := self.reading.idle.get(name):
            translation.same.append((text, reason))
        else:
            self._list_without_key(name, text, self.reading.stated.get(name))

    def _list_without_key(self, name: str, text: str, value: Any) -> None:
        """The same of a setting that has no key: its framework's own tables say what it is."""
        translation, source = self.translation, self.source
        is_default = name in source.defaults and same_value(value, source.defaults[name])
        if is_default and not source.is_machine(name) and name not in source.relied_on:
            translation.same.append((text, "it is so without it"))
        elif reason := first_reason(source.tables["cannot"], name):
            translation.cannot.append((text, reason))
        elif source.is_machine(name) or name.startswith(EXPORTED):
            translation.machine.append(text)
        elif name in source.relied_on:
            entry = source.relied_on[name]
            if same_value(value, entry["value"]):
                translation.same.append((text, f"it is so without it: {entry['why']}"))
            else:
                translation.cannot.append((text, f"it has no counterpart; without it: {entry['why']}"))
        else:
            release = source.tables["release"]
            known = f"a setting of {release}" if name in source.defaults else f"no setting of {release}, by this name"
            translation.unknown.append((text, known))

    def list_defaults(self) -> None:
        """Put defaults of the source, which the text does not state, into the list of what cannot be expressed."""
        for key, reason in self.rendering.refused.items():
            if key not in LAYOUT and not any(name in self.labels for name in self.reading.settings.get(key, ())):
                text = (
                    f"{key_meanings()[key]}: {self.reading.common[key]}, a default of {self.source.tables['release']}"
                )
                self.translation.cannot.append((text, reason))
                if key in OBJECTIVE:
                    self.translation.objective.add(text)


def other_kl_in_reward(source: CommandParser, target: CommandParser, common: Mapping[str, Any]) -> dict[str, str]:
    """By key, what another framework does with a KL term in the reward; with returns over tokens all do the same."""
    in_group = common["algorithm"] != "ppo" and common.get("objective.estimator") != "reinforce"
    is_used = common.get("objective.kl_in") == "reward" and common.get("objective.kl_coefficient")
    return told_apart(source, target, "kl_in_reward", "objective.kl_in") if in_group and is_used else {}


def told_apart(source: CommandParser, target: CommandParser, table: str, key: str) -> dict[str, str]:
    """By key, what two frameworks do by a table of each; empty where one has none or both do the same."""
    text = difference((source, target), [parser.tables.get(table) for parser in (source, target)])
    return {key: text} if text else {}


def difference(parsers: Sequence[CommandParser], texts: Sequence[str | None]) -> str:
    """What each of two frameworks does, with its release; empty where one has none or both do the same."""
    if not all(texts) or texts[0] == texts[1]:
        return ""
    return "; ".join(f"{parser.tables['release']} {text}" for parser, text in zip(parsers, texts, strict=True))


def other_means(
    source: CommandParser, target: CommandParser, common: Mapping[str, Any], rendered: Mapping[str, Any]
) -> dict[str, str]:
    """By key, that another framework averages a term of the loss otherwise.

    Args:
        source: whose text it is.
        target: whose settings are wanted.
        common: what the text says.
        rendered: what of it the target has.
    """
    terms = ["objective.entropy_coefficient"]
    terms += ["objective.kl_coefficient"] if rendered.get("objective.kl_in") == "loss" else []
    reasons = {}
    for key in (term for term in terms if rendered.get(term)):
        means = [
            "token_mean" if key in parser.tables.get("averaged_over_tokens", ()) else keys.get(MEAN)
            for parser, keys in ((source, common), (target, rendered))
        ]
        if text := difference((source, target), [mean and f"averages it by {mean}" for mean in means]):
            reasons[key] = text
    return reasons


def first_reason(reasons: Mapping[str, str], name: str) -> str | None:
    """The reason of the first pattern that a setting's name matches."""
    return next((reason for pattern, reason in reasons.items() if fnmatchcase(name, pattern)), None)


def outdated_entries(parser: CommandParser, released: Mapping[str, Any]) -> list[str]:
    """What the tables say of the release and is not so.

    Args:
        parser: whose tables.
        released: by setting, the default of the installed release, as its parser's `defaults` gives it.
    """
    known = storable_settings(released)
    stated = {name: value for name, value in parser.defaults.items() if name != parser.gpus}
    differences = [
        f"{name} is {known.get(name)!r}, not {stated.get(name)!r}" for name in {**stated, **known}
        if (name in stated) != (name in known)
        or not (parser.is_machine(name) or same_value(known[name], stated[name]))
    ]  # fmt: skip
    names = [
        *(
            name
            for old, new in parser.tables["renamed"].items()
            if not old.endswith(".*")
            for name in ([new] if isinstance(new, str) else new)
        ),
        *(name for implied in parser.tables["implied"].values() for name in implied),
        *parser.unconverted.values(),
    ]
    return differences + [f"there is no setting {name}" for name in names if name not in known]
