"""What-if variants: a run with another value for some of its keys, without a file of its own.

The name holds the values: `openr1/qwen2.5-math-7b@objective.kl_coefficient=0.01`, several with a comma between them. A
key is one of the run file's scale, such as `steps`, `optimizer.learning_rate` or `evaluation.override.max_tokens`.
Where stages state the key themselves, theirs is replaced as well; `stages.2.steps` is that of one stage.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Mapping
from typing import Any

from recipes.sweeps import value_text
from system.errors import UserError
from system.yaml_files import read_yaml_text

PLAIN = frozenset(string.ascii_letters + string.digits + "._-+")  # what a value's text may have in the name of a folder
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
KEY = re.compile(r"[A-Za-z0-9_.+-]+")
LONGEST = 180  # characters of a name, which is that of a folder


def name(run: str, values: Mapping[str, Any]) -> str:
    """The name of a variant.

    Args:
        run: `<recipe>/<run>`.
        values: by key; texts are read as `read_value` does.

    Raises:
        UserError: the run is one of a sweep, a key cannot be one, or the name would be too long for a folder.
    """
    if "@" in run:
        raise UserError(f"--set makes a variant of a run, but {run} is one already", code="variant-of-variant", run=run)
    if strange := [key for key in values if not KEY.fullmatch(key)]:
        raise UserError(f"a key has letters, digits and dots, but '{strange[0]}' has others", code="unknown-key")
    parts = [f"{key}={_escape(_canonical(value))}" for key, value in sorted(values.items())]
    variant = f"{run}@{','.join(parts)}"
    if len(variant) > LONGEST:
        raise UserError(
            f"a variant's name holds its settings and may have {LONGEST} characters, but {variant} has {len(variant)}: "
            "make a run file with `crosszero new run` instead",
            code="long-name",
        )
    return variant


def is_variant(run: str) -> bool:
    """Whether a name is that of a variant, rather than of a run or a sweep's run."""
    return "=" in run.partition("@")[2]


def base_run(run: str) -> str:
    """The run that a variant, or a run itself, is of."""
    return run.partition("@")[0] if is_variant(run) else run


def settings(run: str) -> dict[str, Any]:
    """The values that a variant's name holds, by key."""
    pairs = (part.partition("=") for part in run.partition("@")[2].split(","))
    return {key: read_value(_unescape(text)) for key, _, text in pairs}


def label(run: str) -> str:
    """A variant's settings for readers, such as `objective.kl_coefficient 0.01`; empty for a run itself."""
    return ", ".join(f"{key} {value_text(value)}" for key, value in settings(run).items()) if is_variant(run) else ""


def apply(content: dict[str, Any], variant: str, scale: str) -> dict[str, Any]:
    """The content of a run's file at one scale with a variant's values in place of its own.

    Args:
        content: of the run's file, with what it inherits.
        variant: its name.
        scale: whose values are replaced.
    """
    for key, value in settings(variant).items():
        group, _, own = key.partition(".")
        values = content[scale]
        if group == "stages":
            number, _, own = own.partition(".")
            _set(_stage(values, number, variant), own, value)
            continue
        _set(values, key, value)
        for stage in values.get("stages", []):
            if group in stage:
                _set(stage, key, value)
    return content


def value_of(content: Mapping[str, Any], key: str) -> Any:
    """The value of a key such as `group.key` in what a run file has for one scale; None where it has none.

    That of a stage, `stages.2.group.key`, is the run's where the stage does not state it.
    """
    group, _, own = key.partition(".")
    if group == "stages":
        number, _, own = own.partition(".")
        value = value_of(content["stages"][int(number) - 1], own)
        return value_of(content, own) if value is None else value
    value = content.get(group)
    if not own or value is None:
        return value
    return value.get(own) if group == "native" else value_of(value, own)


def read_value(text: str) -> Any:
    """The value of a text: a number such as 1e-6, which is none in YAML, or YAML."""
    if NUMBER.fullmatch(text):
        return float(text) if set(text) & set(".eE") else int(text)
    return read_yaml_text(text, "--set")


def _stage(values: dict[str, Any], number: str, variant: str) -> dict[str, Any]:
    stages: list[dict[str, Any]] = values.get("stages", [])
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= len(stages)):
        raise UserError(
            f"stages.{number} should name a stage of {base_run(variant)} by its number, from 1 to {len(stages) or 1}",
            code="unknown-stage",
        )
    return stages[int(number) - 1]


def _set(values: dict[str, Any], key: str, value: Any) -> None:
    """Set a key such as `group.key`; the keys of `native` have dots of their own."""
    group, _, own = key.partition(".")
    if not own:
        values[group] = value
        return
    inner = dict(values.get(group, {}))
    if group == "native":
        inner[own] = value
    else:
        _set(inner, own, value)
    values[group] = inner


def _canonical(value: Any) -> str:
    """One text for each value: 1e-6 and 0.000001 are the same variant."""
    read = read_value(value) if isinstance(value, str) else value
    return read if isinstance(read, str) else json.dumps(read, separators=(",", ":"))


def _escape(text: str) -> str:
    return "".join(chr(byte) if chr(byte) in PLAIN else f"~{byte:02X}" for byte in text.encode())


def _unescape(text: str) -> str:
    return re.sub(rb"~([0-9A-F]{2})", lambda match: bytes([int(match[1], 16)]), text.encode()).decode()
