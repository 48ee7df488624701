"""Sweeps: one run file whose values of one to three keys vary; each setting is a run of its own.

`recipes/<recipe>/<sweep>.sweep.yaml` is a run file with a list of values for some keys of a scale:

    sweep:
      demo: {optimizer.learning_rate: [3.0e-4, 1.0e-3], objective.kl_coefficient: [0.0, 0.01]}
      full: …

Its settings are all combinations, the last key's values changing first: the runs `<recipe>/<sweep>@1`, `…@2` and so on.
A value of a group such as `batch` names several keys that change together. Put the run's own values first: the page of
a sweep compares the other settings with the first.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from contracts.run_file import RECIPES, inherit, validate
from system.errors import UserError
from system.unknown_names import unknown
from system.yaml_files import display_path, read_yaml

SUFFIX = ".sweep.yaml"


def names() -> list[str]:
    """All sweeps, as <recipe>/<sweep>, in the order of their files."""
    return [f"{file.parent.name}/{file.name.removesuffix(SUFFIX)}" for file in sorted(RECIPES.glob(f"*/*{SUFFIX}"))]


def sweep_file(name: str) -> Path:
    """The file of a sweep or of one of its runs.

    Raises:
        UserError: there is no such sweep.
    """
    sweep = name.partition("@")[0]
    if sweep not in names():
        raise unknown("sweep", sweep, names())
    return RECIPES / f"{sweep}{SUFFIX}"


def settings(name: str, scale: str) -> list[dict[str, Any]]:
    """The settings of a sweep at one scale: values by key, `<group>.<key>` or a group that has several values.

    Raises:
        UserError: there is no such sweep, or its file breaks the schema or varies nothing.
    """
    file = sweep_file(name)
    content = read_yaml(file)
    validate(inherit(content, file), "run", file)
    if not content.get("sweep"):
        raise UserError(
            f"{display_path(file)}: it should have the values to try under `sweep`, but has none; add them",
            code="empty-sweep",
        )
    if scale not in content["sweep"]:
        raise UserError(
            f"{display_path(file)} has no values to try at scale {scale}: sweep at {' or '.join(content['sweep'])}",
            code="missing-scale",
            scale=scale,
        )
    varied = content["sweep"][scale]
    return [dict(zip(varied, values, strict=True)) for values in itertools.product(*varied.values())]


def run_names(name: str, scale: str) -> list[str]:
    """The names of a sweep's runs at one scale, `<recipe>/<sweep>@<number>` from 1."""
    return [f"{name}@{number}" for number in range(1, len(settings(name, scale)) + 1)]


def run_setting(run: str, scale: str) -> dict[str, Any]:
    """The setting of one of a sweep's runs; see `settings`.

    Raises:
        UserError: the sweep has no such run.
    """
    name, _, number = run.partition("@")
    all_settings = settings(name, scale)
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= len(all_settings)):
        raise UserError(
            f"{name} has {len(all_settings)} runs at scale {scale}, {name}@1 to {name}@{len(all_settings)}, but not "
            f"{run}",
            code="unknown-name",
            kind="run of the sweep",
            name=run,
        )
    return all_settings[int(number) - 1]


def run_content(run: str, scale: str) -> dict[str, Any]:
    """What the run file of one of a sweep's runs would hold: the sweep's own, with the values of its setting."""
    varied = run_setting(run, scale)
    file_content = read_yaml(sweep_file(run))
    del file_content["sweep"]
    values = file_content.setdefault(scale, {})
    for key, value in varied.items():
        group, _, own = key.partition(".")
        if own:
            values[group] = {**values.get(group, {}), own: value}
        elif isinstance(value, dict):
            values[group] = {**values.get(group, {}), **value}
        else:
            values[group] = value
    return file_content


def value_text(value: Any) -> str:
    """A value of a setting for readers, such as `prompts_per_update 9, samples_per_prompt 14`."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {value_text(one)}" for key, one in value.items())
    if isinstance(value, list):
        return "; ".join(map(value_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
