"""A command as the text of a run file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from frameworks.command_parser import CommandParser
from frameworks.command_reading import Reading
from translate.rendering import GROUPS, Rendering, as_run
from translate.translation import key_meanings, same_value

WHOLE = ("model", "steps")  # keys without a group


def as_run_file(source: CommandParser, reading: Reading, labels: Mapping[str, list[str]]) -> str:
    """What a run file holds at full scale, in YAML; what has no key is under `native`, if the adapter takes it.

    Args:
        source: of the command's framework.
        reading: what the command means.
        labels: how the text has each setting.
    """
    rendering = Rendering(source, reading.common)
    values: dict[str, Any] = {key: value for key, value in rendering.common.items() if key in WHOLE}
    for key, value in rendering.common.items():
        group, _, name = key.partition(".")
        if name and group != "more":
            values.setdefault(group, {})[name] = value
    with_key = {
        name for key, names in reading.settings.items() for name in names
        if key in ("algorithm", *WHOLE) or key.partition(".")[0] in (*GROUPS, "hardware")
    } | {source.unconverted["model"]}  # fmt: skip
    of_adapter = source.stated_settings(*as_run(rendering.common, source.framework))

    def is_native(name: str) -> bool:
        known = name in source.defaults and not source.is_machine(name)
        is_own = name in source.tables.get("weights_and_data", ())
        if not known or is_own or name in with_key or name in of_adapter or name in reading.idle:
            return False
        value = reading.stated[name]
        return not (same_value(value, source.defaults[name]) or source.why_not_in_command(name, value))

    native = {name: reading.stated[name] for name in labels if is_native(name)}
    if native:
        values["native"] = native
    left_out = list[str]()
    for name, texts in labels.items():
        reason = reading.reasons.get(name)
        if name not in native and (reason or name not in with_key):
            left_out += [f"# Not in a run file: {text}{f': {reason}' if reason else ''}" for text in texts]
    left_out += [
        f"# Not in a run file: {key_meanings()[key]}: {reading.common[key]}, a default of {source.tables['release']}"
        for key, names in reading.settings.items() if key.startswith("more.critic_") and not labels.keys() & names
    ]  # fmt: skip
    left_out += [f"# {key}: {note}" for key, note in rendering.notes.items()]
    missing = [name for name in ("dataset", "steps") if name not in values]
    head = (
        f"# To be added: title, prompt, rewards, demo; under full: {', '.join(missing)}, checkpoints, evaluation, and\n"
        "# hardware's cpus, memory_gb and hours."
    )
    content = {"framework": source.framework, "algorithm": reading.common["algorithm"], "full": values}
    return "\n".join([head, yaml.safe_dump(content, sort_keys=False, allow_unicode=True), *left_out])
