"""Defaults of the pinned releases that run files rely on, compared with those of an installed release.

frameworks/<name>/defaults.yaml lists them: what no command states, but what is trained depends on. An entry holds

value   the default of the pinned release
why     what it does
when    only runs with these settings rely on it: `algorithm`, or names such as objective.kl_in, with their values;
        `set` stands for any value but 0

`watched` are the settings that can make up an objective. One that no run states, and that is neither in `defaults` nor
in `no_effect`, is new, and could change runs as a flipped default does.

`python -m frameworks.release_defaults NAME`, in the framework's environment, writes its released_settings.json, and
released_engines.json or released_types.json of a framework whose parser_check.py has `engines` or `types`.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from contracts.run_file import SCALES, Run, Stage
from frameworks import adapter, run_settings
from recipes.runs import load_run, run_names
from system.yaml_files import read_yaml

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Drift:
    """One default that is not what runs were written for."""

    setting: str
    stated: Any
    released: Any
    runs: tuple[str, ...]  # `<run> (<scale>)` that it would change

    def __str__(self) -> str:
        """A sentence for a message."""
        affected = ", ".join(self.runs) or "no run"
        return f"{self.setting} is {self.released!r} in the installed release, not {self.stated!r}: changes {affected}"


@cache
def stated_settings(framework: str) -> tuple[tuple[Run, Stage, frozenset[str]], ...]:
    """Every stage of every run of a framework, at every scale, with the settings that its command states."""
    speaks = adapter.load(framework)
    runs = [load_run(name, scale) for scale in SCALES for name in run_names(scale)]
    return tuple(
        (run, stage, frozenset(speaks.stated_settings(run, stage)))
        for run in runs if run.framework == framework for stage in run.stages
    )  # fmt: skip


def drifts(framework: str, released: Mapping[str, Any]) -> list[Drift]:
    """The stated defaults that differ from released ones, with the runs that rely on them.

    Args:
        framework: whose defaults.yaml is read.
        released: by setting, the default of the installed release, as its parser's `defaults` gives it.
    """
    stated = read_yaml(FOLDER / framework / "defaults.yaml")["defaults"]
    flipped = {name: entry for name, entry in stated.items() if yaml_value(released.get(name)) != entry["value"]}
    return [
        Drift(
            name,
            entry["value"],
            yaml_value(released.get(name)),
            runs_that_rely_on(framework, name, entry.get("when", {})),
        )
        for name, entry in flipped.items()
    ]


def runs_that_rely_on(framework: str, name: str, when: Mapping[str, Any]) -> tuple[str, ...]:
    """The runs whose commands do not state a setting, of those that a condition is true of."""
    affected = [
        run for run, stage, stated in stated_settings(framework) if name not in stated and _holds(when, run, stage)
    ]
    return tuple(dict.fromkeys(f"{run.name} ({run.scale})" for run in affected))


def unknown_settings(framework: str, released: Mapping[str, Any]) -> list[str]:
    """Watched settings of a release that no list and no command of ours knows.

    Args:
        framework: whose defaults.yaml is read.
        released: as in `drifts`.
    """
    content = read_yaml(FOLDER / framework / "defaults.yaml")
    known = {*content["defaults"]}.union(*(stated for _, _, stated in stated_settings(framework)))
    watched = [name for name in released if any(fnmatch(name, pattern) for pattern in content["watched"])]
    without = [name for name in watched if not any(fnmatch(name, pattern) for pattern in content["no_effect"])]
    return [name for name in without if name not in known]


def yaml_value(value: Any) -> Any:
    """A default as YAML holds it: tuples as lists, members of enumerations as their values."""
    if isinstance(value, list | tuple):
        return [yaml_value(item) for item in value]
    return getattr(value, "value", value)


def _holds(when: Mapping[str, Any], run: Run, stage: Stage) -> bool:
    settings = {"algorithm": run.algorithm, "device": run.device, **run_settings.values(stage)}
    return all(
        bool(settings.get(name)) if wanted == "set" else settings.get(name) in wanted for name, wanted in when.items()
    )


def main() -> None:
    """Write every setting of the installed release with its default."""
    framework = sys.argv[1]
    with contextlib.redirect_stdout(sys.stderr):
        contents = stored_releases(framework)
    for name, content in contents.items():
        text = json.dumps(content, indent=0, ensure_ascii=False)
        (FOLDER / framework / f"released_{name}.json").write_text(f"{text}\n", encoding="utf-8")


def stored_releases(framework: str) -> dict[str, dict[str, Any]]:
    """What frameworks/<name>/released_<key>.json hold of the installed release, by key; needs its environment."""
    parser = adapter.load(framework).parser
    engines: dict[str, dict[str, Any]] = getattr(parser, "engines", dict)()
    of_engines = {name: {**parts, "has": storable_settings(parts["has"])} for name, parts in engines.items()}
    types: dict[str, Any] = getattr(parser, "types", dict)()
    more = {"engines": of_engines, "types": types}
    return {"settings": storable_settings(parser.defaults()), **{name: part for name, part in more.items() if part}}


def storable_settings(released: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a release with their defaults as JSON holds them."""
    return {name: storable(value) for name, value in released.items() if name not in ("help", "no_help")}


def storable(value: Any) -> Any:
    """A default as JSON holds it; None for what is of this moment or has no text."""
    value = yaml_value(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | list | dict) else None


if __name__ == "__main__":
    main()
